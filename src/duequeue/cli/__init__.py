"""The `duequeue` command; each of its commands has its own module."""

import os
import sys
from collections.abc import Sequence
from importlib.metadata import version

from duequeue.cli import migrate, pipeline, worker
from duequeue.cli.address import PasswordHidingParser
from duequeue.errors import DueQueueError

COMMANDS = (migrate, pipeline, worker)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    parser = PasswordHidingParser(
        prog="duequeue", description="Deliver messages when they are due."
    )
    parser.add_argument("--version", action="version", version=f"duequeue {version('duequeue')}")
    commands = parser.add_subparsers(metavar="command", required=True)
    for command in COMMANDS:
        command.add_to(commands)
    given = parser.parse_args(arguments)
    try:
        status: int = given.run(given)
    except BrokenPipeError:  # the reader of our output, such as `head`, has closed it
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115 - Python flushes it at exit
        return 1
    except (DueQueueError, ValueError) as error:
        print(f"duequeue: {error}", file=sys.stderr)
        return 1
    return status
