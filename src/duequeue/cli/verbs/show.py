"""`duequeue show` shows one message, or only its payload, or what became of it."""

import argparse
import sys

from duequeue.cli.exit_codes import ExitCode
from duequeue.cli.facts import SETTLED_COLUMNS, message_facts, settled_facts
from duequeue.cli.opening import NothingFound, add_queue, chosen_queue, open_found, place_of
from duequeue.cli.output import Output, add_output

MOST_ROWS = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = "Show one message in any state, the newest burial of its key included."
    parser.add_argument("key", help="the key of the message")
    add_queue(parser)
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--payload", action="store_true", help="print the bytes of the payload, and nothing else"
    )
    what.add_argument(
        "--history",
        action="store_true",
        help="list what happened to messages with this key, if the queue keeps a history",
    )
    add_output(parser, "print only the key")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Show the message."""
    output = Output(given)
    place = place_of(given)
    found = chosen_queue(given, place)
    with open_found(place, found) as queue:
        if given.history:
            rows = queue.history(MOST_ROWS, given.key)
            if not rows:
                raise NothingFound(f"the history of {found.name!r} has nothing on {given.key!r}")
            output.items(map(settled_facts, rows), SETTLED_COLUMNS)
            return ExitCode.DONE
        message = queue.read(given.key)
    if message is None:
        raise NothingFound(f"{given.key!r} is not in the queue {found.name!r}")
    if given.payload:
        sys.stdout.flush()
        sys.stdout.buffer.write(message.payload)
    else:
        output.item(message_facts(message, found.payload_type))
    return ExitCode.DONE
