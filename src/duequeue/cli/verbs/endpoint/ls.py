"""`duequeue endpoint ls` lists the endpoints and their states."""

import argparse
from typing import Any

from duequeue.cli.endpoints import endpoints_at
from duequeue.cli.exit_codes import ExitCode
from duequeue.cli.facts import named
from duequeue.cli.opening import add_place, place_of
from duequeue.cli.output import Column, Output, add_output


def _state(item: Any, /) -> str:
    return str(item["state"]) + (f": {item['reason']}" if item["reason"] else "")


COLUMNS = (named("id"), named("queue"), named("url"), Column("STATE", _state))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = (
        "List the endpoints: active, throttled (the receiver asked for a pause), open (it keeps "
        "failing, so calls are held back) or disabled. Secrets are never shown."
    )
    add_place(parser)
    parser.add_argument("--queue", metavar="NAME", help="only the endpoints of this queue")
    add_output(parser, "print only the ids")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """List the endpoints."""
    with endpoints_at(place_of(given)) as endpoints:
        found = endpoints.all(given.queue)
    Output(given).items(found, COLUMNS, key="id")
    return ExitCode.DONE
