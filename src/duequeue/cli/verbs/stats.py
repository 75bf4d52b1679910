"""`duequeue stats` counts the messages of one queue or of all queues, by state."""

import argparse
from collections.abc import Iterator
from typing import Any

from duequeue.cli.exit_codes import ExitCode
from duequeue.cli.facts import STATS_COLUMNS, stats_facts
from duequeue.cli.opening import NothingFound, Place, add_queue, open_found, place_of
from duequeue.cli.output import Output, add_output
from duequeue.queue_names import QueueName


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = (
        "Count the messages of one queue, or of every queue, by state. This reads whole queues."
    )
    add_queue(parser, default="all queues")
    add_output(parser, "print only the names of the queues")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Count the messages."""
    place = place_of(given)
    Output(given).items(_counted(place, wanted(given, place)), STATS_COLUMNS, key="queue")
    return ExitCode.DONE


def wanted(given: argparse.Namespace, place: Place) -> list[QueueName]:
    """Return the queues that were asked for, by name or not, by type or not."""
    found = [
        each
        for each in place.queues()
        if given.queue in (None, each.name) and given.type in (None, each.payload_type)
    ]
    if not found and given.queue is not None:
        raise NothingFound(f"there is no queue {given.queue!r}; `duequeue queues` lists them")
    return found


def _counted(place: Place, found: list[QueueName]) -> Iterator[dict[str, Any]]:
    for each in found:
        with open_found(place, each) as queue:
            yield stats_facts(each, queue.stats())
