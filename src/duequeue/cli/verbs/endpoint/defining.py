"""`duequeue endpoint set` defines an endpoint, or changes it."""

import argparse
import sys
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.json import schema
from msgspec.structs import fields

from duequeue.callbacks.definition import EndpointDefinition
from duequeue.cli.endpoints import endpoints_at
from duequeue.cli.exit_codes import ExitCode
from duequeue.cli.opening import add_place, place_of
from duequeue.cli.output import Output, add_output
from duequeue.cli.payloads import STDIN
from duequeue.errors import InvalidArgument

# The options that go into the definition as they are; the last words stand for a default of None.
_OPTIONS: tuple[tuple[str, type[str] | type[int], str, str], ...] = (
    ("type", str, "NAME", ""),
    ("timeout", str, "DURATION", ""),
    ("concurrency", int, "N", ""),
    ("rate", str, "RATE", "no limit"),
    ("attempts", int, "N", ""),
    ("backoff", str, "FIRST:LONGEST:FACTOR", ""),
    ("keep", str, "DURATION", ""),
)


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
    add_secret(parser)
    for name, kind, metavar, otherwise in _OPTIONS:
        parser.add_argument(
            f"--{name}", type=kind, metavar=metavar, help=about(EndpointDefinition, name, otherwise)
        )
    parser.add_argument(
        "--respond", action="store_true", help=_title(EndpointDefinition, "respond")
    )
    parser.add_argument(
        "--default",
        action=argparse.BooleanOptionalAction,
        help=about(EndpointDefinition, "default", "if no other does"),
    )
    add_output(parser, "print only the secret, if it is new")
    parser.set_defaults(run=run)


def about(definition: type[Struct], name: str, otherwise: str = "") -> str:
    """Return the help for a field of a definition, with its default."""
    default = next(each.default for each in fields(definition) if each.name == name)
    shown = otherwise if default is None else default
    return f"{_title(definition, name)} (default: {shown})"


def _title(definition: type[Struct], name: str) -> str:
    title: str = schema(definition)["$defs"][definition.__name__]["properties"][name]["title"]
    return title


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
    for name in (*(each[0] for each in _OPTIONS), "default"):
        if (value := getattr(given, name)) is not None:
            definition[name] = value
    if given.respond:
        definition["respond"] = True
    if (secret := secret_in(given)) is not None:
        definition["secret"] = secret
    with endpoints_at(place_of(given), create=True) as endpoints:
        changed = endpoints.put(given.id, definition)
    show_changed(given, changed)
    return ExitCode.DONE
