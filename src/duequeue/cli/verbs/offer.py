"""`duequeue offer` puts a message into a queue."""

import argparse
from typing import Any

from duequeue.cli.codecs import load_codec
from duequeue.cli.config import load_defaults
from duequeue.cli.exit_codes import ExitCode
from duequeue.cli.facts import at, named
from duequeue.cli.opening import add_queue_name, existing_queues, place_of
from duequeue.cli.output import Output, add_output
from duequeue.cli.payloads import add_payload, read_payload
from duequeue.cli.when import instant, now, stamp
from duequeue.codec import CODECS, Codec
from duequeue.errors import InvalidArgument
from duequeue.queue_names import QueueName

COLUMNS = (named("outcome"), named("key"), at("due_at", "DUE"))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = (
        "Put a message into a queue, which is created if there is none of this name. If the key "
        "is in the queue already, the message is updated."
    )
    parser.add_argument("key", help="the key of the message")
    add_payload(parser)
    add_queue_name(parser)
    parser.add_argument(
        "--due",
        type=instant,
        metavar="WHEN",
        help="30m from now, or a date and time such as 2026-11-18T07:00:00+01:00 (default: now)",
    )
    parser.add_argument(
        "--expires", type=instant, metavar="WHEN", help="drop the message if it is delivered later"
    )
    parser.add_argument(
        "--header",
        action="append",
        default=[],
        type=_header,
        metavar="NAME=VALUE",
        help="a header of the message; may be repeated",
    )
    parser.add_argument(
        "--no-replace", action="store_true", help="leave a message with this key as it is"
    )
    add_output(parser, "print only the key")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Offer the message."""
    output = Output(given)
    place = place_of(given)
    found = existing_queues(place)
    name = queue_name(given, found or [])
    codec = _codec(given.codec, [each for each in found or [] if each.name == name])
    payload = read_payload(given.payload, codec)
    due = given.due or now()
    with place.open(name, codec, migrate=found is None) as queue:
        outcome = queue.offer(
            given.key,
            payload,
            due,
            replace=not given.no_replace,
            headers=dict(given.header) or None,
            expires=given.expires,
        )
    offered = {"key": given.key, "outcome": outcome.value, "due_at": stamp(due)}
    output.items([offered], COLUMNS)
    if QueueName(name, codec.type_name) not in (found or []):
        output.talk(f"the queue {name!r} with the type {codec.type_name!r} is new")
    return ExitCode.DONE


def queue_name(given: argparse.Namespace, found: list[QueueName]) -> str:
    """Return the name of the queue to offer to, which need not exist."""
    name: str | None = given.queue or load_defaults().queue
    names = {each.name for each in found}
    if name is None and len(names) != 1:
        known = f"; there are {', '.join(sorted(names))}" if names else ""
        raise InvalidArgument("--queue", text=f"pass --queue with the name of the queue{known}")
    return name or names.pop()


def _codec(choice: str | None, found: list[QueueName]) -> Codec[Any]:
    """Return the codec that was chosen, or else the one of the queue, or else JSON."""
    types = {each.payload_type for each in found}
    if choice is not None:
        return _of_queue(load_codec(choice), types)
    if not types:
        return CODECS["json"]
    known = types & CODECS.keys()
    if len(types) == 1 and known:
        return CODECS[known.pop()]
    raise InvalidArgument(
        "--codec",
        text=f"the queue has the payload type {', '.join(sorted(types))}: pass --codec "
        "module:Class, so that the payload can be checked",
    )


def _of_queue(codec: Codec[Any], types: set[str]) -> Codec[Any]:
    if types and codec.type_name not in types:
        raise InvalidArgument(
            "--codec",
            text=f"the queue has the payload type {', '.join(sorted(types))}, not "
            f"{codec.type_name}, and queues of different types do not see each other's messages",
        )
    return codec


def _header(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"{text!r} does not have the form NAME=VALUE")
    return name, value
