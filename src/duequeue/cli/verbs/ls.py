"""`duequeue ls` lists the messages of a queue, in due order."""

import argparse
from collections.abc import Iterator
from itertools import islice
from typing import Any

from duequeue.cli.exit_codes import ExitCode
from duequeue.cli.facts import MESSAGE_COLUMNS, message_facts
from duequeue.cli.numbers import positive
from duequeue.cli.opening import add_queue, chosen_queue, open_found, place_of
from duequeue.cli.output import Output, add_output
from duequeue.cli.when import instant
from duequeue.defaults import LONGEST_PAGE, PAGE
from duequeue.message import Snapshot, State
from duequeue.queue import Queue

STATES = [state.value for state in State if state is not State.BURIED]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = "List the messages of a queue in due order. `buried ls` lists the buried."
    add_queue(parser)
    add_filters(parser)
    add_limit(parser)
    add_output(parser)
    parser.set_defaults(run=run)


def add_filters(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that select messages."""
    parser.add_argument("--state", choices=STATES, help="only messages in this state")
    parser.add_argument("--prefix", help="only keys that begin with this text")
    parser.add_argument("--due-from", type=instant, metavar="WHEN", help="due then or later")
    parser.add_argument("--due-to", type=instant, metavar="WHEN", help="due before then")


def add_limit(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say how many to list."""
    number = parser.add_mutually_exclusive_group()
    number.add_argument(
        "--limit",
        type=positive,
        default=PAGE,
        metavar="N",
        help=f"list at most this many (default: {PAGE})",
    )
    number.add_argument(
        "--all", dest="limit", action="store_const", const=None, help="list all of them"
    )


def run(given: argparse.Namespace) -> int:
    """List the messages."""
    output = Output(given)
    place = place_of(given)
    found = chosen_queue(given, place)
    with open_found(place, found) as queue:
        messages = selected(queue, given)
        listed = islice(messages, given.limit)
        facts = (message_facts(message, found.payload_type) for message in listed)
        output.items(facts, MESSAGE_COLUMNS)
        if given.limit is not None and next(messages, None) is not None:
            output.talk(f"there are more than {given.limit:,}: pass --all or another --limit")
    return ExitCode.DONE


def filters_of(given: argparse.Namespace) -> dict[str, Any]:
    """Return the filters of a command as `Queue.list` takes them."""
    return {name: getattr(given, name) for name in ("state", "prefix", "due_from", "due_to")}


def selected(queue: Queue[bytes], given: argparse.Namespace) -> Iterator[Snapshot[bytes]]:
    """Return the selected messages, page by page."""
    limit = getattr(given, "limit", None)
    length = LONGEST_PAGE if limit is None else min(limit, LONGEST_PAGE)
    cursor: str | None = None
    while True:
        page = queue.list(**filters_of(given), after=cursor, limit=length)
        yield from page.messages
        cursor = page.next
        if cursor is None:
            return
