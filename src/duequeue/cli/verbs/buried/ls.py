"""`duequeue buried ls` lists buried messages."""

import argparse
from collections.abc import Iterator
from itertools import islice

from duequeue.cli.exit_codes import ExitCode
from duequeue.cli.facts import BURIAL_COLUMNS, burial_facts
from duequeue.cli.opening import add_queue, chosen_queue, open_found, place_of
from duequeue.cli.output import Output, add_output
from duequeue.cli.verbs.ls import add_limit
from duequeue.message import BuriedMessage
from duequeue.queue import Queue

PAGE = 500


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = "List buried messages, the oldest burial first."
    add_queue(parser)
    parser.add_argument("--reason", metavar="TEXT", help="only those with this text in the reason")
    add_limit(parser)
    add_output(parser)
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """List the burials."""
    output = Output(given)
    place = place_of(given)
    found = chosen_queue(given, place)
    with open_found(place, found) as queue:
        listed = burials(queue, given.reason)
        shown = islice(listed, given.limit)
        output.items((burial_facts(each, found.payload_type) for each in shown), BURIAL_COLUMNS)
        if given.limit is not None and next(listed, None) is not None:
            output.talk(f"there are more than {given.limit:,}: pass --all or another --limit")
    return ExitCode.DONE


def burials(queue: Queue[bytes], reason: str | None = None) -> Iterator[BuriedMessage[bytes]]:
    """Return the burials, page by page."""
    last: str | None = None
    while page := queue.buried(PAGE, after=last, reason=reason):
        yield from page
        last = page[-1].id
