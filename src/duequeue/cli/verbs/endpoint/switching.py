"""`duequeue endpoint enable` and `duequeue endpoint disable`."""

import argparse

from duequeue.cli.exit_codes import ExitCode
from duequeue.cli.facts import named
from duequeue.cli.opening import add_place, place_of
from duequeue.cli.output import Output, add_output
from duequeue.cli.service_calls import calls_at, path_of

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
    return _switch(given, "enable", None, "active", "was not disabled")


def run_disable(given: argparse.Namespace) -> int:
    """Disable the endpoint."""
    return _switch(given, "disable", {"reason": given.reason}, "disabled", "was already disabled")


def _switch(given: argparse.Namespace, verb: str, body: object, state: str, otherwise: str) -> int:
    output = Output(given)
    with calls_at(place_of(given)) as call:
        changed = call("POST", path_of("v1", "endpoints", given.id) + f":{verb}", body)["changed"]
    if not changed:
        output.talk(f"{given.id!r} {otherwise}")
    output.items([{"id": given.id, "state": state}], COLUMNS, key="id")
    return ExitCode.DONE


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", help="the id of the endpoint, as `endpoint ls` shows it")
    add_place(parser)
    add_output(parser, "print only the id")
