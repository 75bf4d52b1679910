"""`duequeue endpoint set` defines an endpoint, or changes it."""

import argparse
import sys
from pathlib import Path
from typing import Any

from duequeue import defaults
from duequeue.cli.exit_codes import ExitCode
from duequeue.cli.opening import add_place, place_of
from duequeue.cli.output import Output, add_output
from duequeue.cli.payloads import STDIN
from duequeue.cli.service_calls import calls_at, path_of
from duequeue.durations import duration_text
from duequeue.errors import InvalidArgument

# The arguments that go into the definition as they are.
_PASSED_ON = ("type", "timeout", "concurrency", "rate", "attempts", "backoff", "keep", "default")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = (
        "Define where the messages of a queue are posted to, or change it. Options that a change "
        "leaves out go back to their defaults, except for the secret and --default. A new "
        "endpoint without a secret gets one, which is printed once."
    )
    parser.add_argument("id", help="the id of the endpoint, such as shop")
    parser.add_argument("endpoint_url", metavar="url", help="the URL to which messages are posted")
    add_place(parser)
    parser.add_argument("--queue", required=True, metavar="NAME", help="the queue")
    parser.add_argument(
        "--type", metavar="NAME", help=f"the payload type (default: {defaults.CALL_TYPE})"
    )
    add_secret(parser)
    parser.add_argument(
        "--timeout",
        metavar="DURATION",
        help=f"how long a whole call may take (default: {duration_text(defaults.CALL_TIMEOUT)})",
    )
    parser.add_argument(
        "--concurrency",
        type=int,
        metavar="N",
        help=f"how many calls may run at a time (default: {defaults.CALL_CONCURRENCY})",
    )
    parser.add_argument(
        "--rate",
        metavar="RATE",
        help="the highest call rate, such as 5/s or 100/m (default: no limit)",
    )
    parser.add_argument(
        "--attempts",
        type=int,
        metavar="N",
        help=f"after how many attempts to bury a message (default: {defaults.CALL_ATTEMPTS})",
    )
    parser.add_argument(
        "--backoff",
        metavar="FIRST:LONGEST:FACTOR",
        help="the first delay between attempts, the longest one, and by which factor they grow "
        f"(default: {defaults.CALL_BACKOFF})",
    )
    parser.add_argument(
        "--respond", action="store_true", help="keep the body of a 2xx answer as the response"
    )
    parser.add_argument(
        "--keep",
        metavar="DURATION",
        help=f"how long to keep a response (default: {duration_text(defaults.KEEP)})",
    )
    parser.add_argument(
        "--default",
        action=argparse.BooleanOptionalAction,
        help="whether it gets the messages that name no endpoint (default: if no other does)",
    )
    add_output(parser, "print only the secret, if it is new")
    parser.set_defaults(run=run)


def add_secret(parser: argparse.ArgumentParser) -> None:
    """Add the argument for a secret, which is read from a file because `ps` shows arguments."""
    parser.add_argument(
        "--secret-file",
        metavar="FILE",
        help="the file with a secret of your own, whsec_… or whsk_…; - reads standard input",
    )


def secret_in(given: argparse.Namespace) -> str | None:
    """Return the secret, if there is one."""
    if given.secret_file is None:
        return None
    try:
        if given.secret_file == STDIN:
            return sys.stdin.readline().strip()
        return Path(given.secret_file).read_text("utf-8").strip()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise InvalidArgument(
            "--secret-file", f"{given.secret_file} cannot be read: {reason}"
        ) from error


def show_changed(given: argparse.Namespace, changed: dict[str, Any]) -> None:
    """Print an endpoint, and its secret if that is new."""
    output = Output(given)
    if given.quiet and "secret" not in changed:
        return
    output.item(changed, key="secret")
    if "secret" in changed:
        output.talk("store the secret now, because it is not shown again")


def run(given: argparse.Namespace) -> int:
    """Define the endpoint."""
    definition: dict[str, Any] = {"queue": given.queue, "url": given.endpoint_url}
    for name in _PASSED_ON:
        if (value := getattr(given, name)) is not None:
            definition[name] = value
    if given.respond:
        definition["respond"] = True
    if (secret := secret_in(given)) is not None:
        definition["secret"] = secret
    with calls_at(place_of(given), create=True) as call:
        changed = call("PUT", path_of("v1", "endpoints", given.id), definition)
    show_changed(given, changed)
    return ExitCode.DONE
