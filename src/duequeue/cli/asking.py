"""Commands that delete something ask before they do, or only say what they would do."""

import argparse
import sys

from duequeue.cli.output import Output
from duequeue.errors import InvalidArgument


def add_safety(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say whether to ask, and whether to do it at all."""
    parser.add_argument("--yes", action="store_true", help="delete without asking")
    parser.add_argument(
        "--dry-run", action="store_true", help="print what would be deleted, and delete nothing"
    )


def agreed(given: argparse.Namespace, question: str, output: Output) -> bool:
    """Return whether to go on; a person is asked, and a script must have said --yes."""
    if given.yes:
        return True
    if not sys.stdin.isatty():
        raise InvalidArgument(
            "--yes",
            text=f"{question} Nothing was changed, because standard input is not a terminal on "
            "which somebody could answer; pass --yes to go ahead",
        )
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() in {"y", "yes"}:
        return True
    output.talk("nothing was changed")
    return False
