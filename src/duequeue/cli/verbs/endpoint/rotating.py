"""`duequeue endpoint rotate` changes the secret of an endpoint."""

import argparse

from duequeue.callbacks.definition import SecretRotation
from duequeue.cli.endpoints import endpoints_at
from duequeue.cli.exit_codes import ExitCode
from duequeue.cli.opening import add_place, place_of
from duequeue.cli.output import add_output
from duequeue.cli.verbs.endpoint.defining import about, add_secret, secret_in, show_changed


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
        help=about(SecretRotation, "overlap"),
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
    with endpoints_at(place_of(given)) as endpoints:
        changed = endpoints.rotate(given.id, body)
    show_changed(given, changed)
    return ExitCode.DONE
