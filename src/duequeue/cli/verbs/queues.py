"""`duequeue queues` lists the queues of a database."""

import argparse

from duequeue.cli.exit_codes import ExitCode
from duequeue.cli.facts import named
from duequeue.cli.opening import add_place, place_of
from duequeue.cli.output import Output, add_output

COLUMNS = (named("queue"), named("type"))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = "List the queues of a database or server, without changing anything."
    add_place(parser)
    add_output(parser, "print only the names")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """List the queues."""
    found = ({"queue": name, "type": kind} for name, kind in place_of(given).queues())
    if not Output(given).items(found, COLUMNS, key="queue"):
        Output(given).talk("there are no queues yet")
    return ExitCode.DONE
