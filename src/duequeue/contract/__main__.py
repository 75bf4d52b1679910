"""`python -m duequeue.contract --url …` runs the contract suite with pytest."""

import sys
from pathlib import Path

import pytest

SUITE = [
    "-p",
    "duequeue.contract.plugin",
    # The fixtures of a clone of this repository must not replace the store of --url by others.
    f"--confcutdir={Path(__file__).parent}",
    "--pyargs",
    "duequeue.contract",
]

if __name__ == "__main__":
    sys.exit(pytest.main([*SUITE, *sys.argv[1:]]))
