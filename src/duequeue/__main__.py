"""`python -m duequeue` is the `duequeue` command."""

import sys

from duequeue.cli import main

if __name__ == "__main__":
    sys.exit(main())
