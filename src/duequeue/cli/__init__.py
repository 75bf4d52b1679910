"""The `duequeue` command: one short file per family of commands."""

import os
import sys
from collections.abc import Sequence
from importlib.metadata import version

from duequeue.cli import migrate, pipeline, worker
from duequeue.cli.address import DiscreetParser
from duequeue.errors import DueQueueError

FAMILIES = (migrate, pipeline, worker)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    parser = DiscreetParser(prog="duequeue", description="Messages, when they are due.")
    parser.add_argument("--version", action="version", version=f"duequeue {version('duequeue')}")
    commands = parser.add_subparsers(metavar="command", required=True)
    for family in FAMILIES:
        family.add_to(commands)
    given = parser.parse_args(arguments)
    try:
        status: int = given.run(given)
    except BrokenPipeError:  # whoever read our output, `head` perhaps, has seen enough
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115 - for the flush at exit
        return 1
    except (DueQueueError, ValueError) as error:
        print(f"duequeue: {error}", file=sys.stderr)
        return 1
    return status
