"""`duequeue endpoint enable` and `duequeue endpoint disable`."""

import argparse

from duequeue.cli.endpoints import endpoints_at
from duequeue.cli.exit_codes import ExitCode
from duequeue.cli.facts import named
from duequeue.cli.opening import add_place, place_of
from duequeue.cli.output import Output, add_output

COLUMNS = (named("state"), named("id"))


def add_enable(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of enable."""
    parser.description = "Call a disabled endpoint again, and forget that it failed."
    _add(parser)
    parser.set_defaults(run=run_enable)


def add_disable(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of disable."""
    parser.description = "Stop calling an endpoint. Its messages wait, and do not use up attempts."
    parser.add_argument("--reason", default="", metavar="TEXT", help="why, for people to read")
    _add(parser)
    parser.set_defaults(run=run_disable)


def run_enable(given: argparse.Namespace) -> int:
    """Enable the endpoint."""
    with endpoints_at(place_of(given)) as endpoints:
        changed = endpoints.enable(given.id)
    return _show(given, "active", None if changed else "was not disabled")


def run_disable(given: argparse.Namespace) -> int:
    """Disable the endpoint."""
    with endpoints_at(place_of(given)) as endpoints:
        changed = endpoints.disable(given.id, given.reason)
    return _show(given, "disabled", None if changed else "was already disabled")


def _show(given: argparse.Namespace, state: str, otherwise: str | None) -> int:
    output = Output(given)
    if otherwise is not None:
        output.talk(f"{given.id!r} {otherwise}")
    output.items([{"id": given.id, "state": state}], COLUMNS, key="id")
    return ExitCode.DONE


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", help="the id of the endpoint, as `endpoint ls` shows it")
    add_place(parser)
    add_output(parser, "print only the id")
