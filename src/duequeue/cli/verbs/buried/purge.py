"""`duequeue buried purge` deletes buried messages."""

import argparse
from datetime import UTC, datetime
from itertools import takewhile

from duequeue.cli.asking import add_safety, agreed
from duequeue.cli.durations import duration
from duequeue.cli.exit_codes import ExitCode
from duequeue.cli.facts import named
from duequeue.cli.numbers import counted
from duequeue.cli.opening import add_queue, open_raw
from duequeue.cli.output import Output, add_output
from duequeue.cli.verbs.buried.ls import burials
from duequeue.cli.when import instant, now
from duequeue.queue import Queue

COLUMNS = (named("queue"), named("purged", is_number=True))
END_OF_TIME = datetime.max.replace(tzinfo=UTC)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = "Delete buried messages by their age, one by its id, or all."
    add_queue(parser)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "--older-than", type=duration, metavar="DURATION", help="buried longer ago than this"
    )
    which.add_argument("--before", type=instant, metavar="WHEN", help="buried before then")
    which.add_argument("--id", help="the burial with this id")
    which.add_argument("--all", action="store_true", help="every burial of the queue")
    add_safety(parser)
    add_output(parser, "print only their number")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Delete the burials."""
    output = Output(given)
    with open_raw(given) as queue:
        before = _before(given)
        number = _number(queue, given.id, before)
        if not number:
            output.talk("there is no such burial")
            return ExitCode.NOTHING_FOUND
        if given.dry_run:
            output.talk(f"{counted(number, 'burial')} would be deleted; nothing was changed")
            return ExitCode.DONE
        if not agreed(given, f"Delete {counted(number, 'burial')} of {queue.name!r}?", output):
            return ExitCode.FAILED
        purged = queue.purge_buried(before) if given.id is None else queue.delete_buried(given.id)
    output.items([{"queue": queue.name, "purged": int(purged)}], COLUMNS, key="purged")
    return ExitCode.DONE


def _before(given: argparse.Namespace) -> datetime:
    if given.older_than is not None:
        before: datetime = now() - given.older_than
        return before
    return given.before or END_OF_TIME


def _number(queue: Queue[bytes], burial_id: str | None, before: datetime) -> int:
    """Count the burials to delete; they are listed in the order of their instants."""
    if burial_id is not None:
        return sum(1 for burial in burials(queue) if burial.id == burial_id)
    return sum(1 for _ in takewhile(lambda burial: burial.buried_at < before, burials(queue)))
