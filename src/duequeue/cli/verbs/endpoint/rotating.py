"""`duequeue endpoint rotate` changes the secret of an endpoint."""

import argparse

from duequeue.cli.exit_codes import ExitCode
from duequeue.cli.opening import add_place, place_of
from duequeue.cli.output import add_output
from duequeue.cli.service_calls import calls_at, path_of
from duequeue.cli.verbs.endpoint.defining import add_secret, secret_in, show_changed
from duequeue.defaults import OVERLAP
from duequeue.durations import duration_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = (
        "Sign with a new secret. During the overlap, callbacks are signed with the old one too, "
        "so that the receiver can change in its own time."
    )
    parser.add_argument("id", help="the id of the endpoint, as `endpoint ls` shows it")
    add_place(parser)
    parser.add_argument(
        "--overlap",
        metavar="DURATION",
        help=f"how long both secrets sign (default: {duration_text(OVERLAP)})",
    )
    add_secret(parser)
    parser.add_argument(
        "--kind",
        choices=("v1", "v1a"),
        help="make a shared secret (v1) or a secret key (v1a) (default: as before)",
    )
    add_output(parser, "print only the secret, if it is new")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Change the secret."""
    asked = {"overlap": given.overlap, "secret": secret_in(given), "kind": given.kind}
    body = {name: value for name, value in asked.items() if value is not None}
    with calls_at(place_of(given)) as call:
        changed = call("POST", path_of("v1", "endpoints", given.id) + ":rotate-secret", body)
    show_changed(given, changed)
    return ExitCode.DONE
