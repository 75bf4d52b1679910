"""`python -m duequeue.contract --url …` runs the contract suite with pytest."""

import sys

import pytest

if __name__ == "__main__":
    suite = ["-p", "duequeue.contract.plugin", "--pyargs", "duequeue.contract"]
    sys.exit(pytest.main([*suite, *sys.argv[1:]]))
