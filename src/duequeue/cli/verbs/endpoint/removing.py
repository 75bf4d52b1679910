"""`duequeue endpoint rm` removes an endpoint."""

import argparse

from duequeue.cli.asking import add_safety, agreed
from duequeue.cli.endpoints import endpoints_at
from duequeue.cli.exit_codes import ExitCode
from duequeue.cli.facts import named
from duequeue.cli.opening import add_place, place_of
from duequeue.cli.output import Output, add_output

COLUMNS = (named("done"), named("id"))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = "Remove an endpoint and its secret. Its messages stay in their queue."
    parser.add_argument("id", help="the id of the endpoint, as `endpoint ls` shows it")
    add_place(parser)
    add_safety(parser)
    add_output(parser, "print only the id")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Remove the endpoint."""
    output = Output(given)
    with endpoints_at(place_of(given)) as endpoints:
        found = endpoints.get(given.id)
        done = "would be removed" if given.dry_run else "removed"
        question = f"Remove the endpoint {given.id!r} of the queue {found['queue']!r}?"
        if not given.dry_run:
            if not agreed(given, question, output):
                return ExitCode.FAILED
            endpoints.remove(given.id)
    output.items([{"id": given.id, "done": done}], COLUMNS, key="id")
    return ExitCode.DONE
