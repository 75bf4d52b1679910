"""`duequeue cron ls` lists the crons of a queue."""

import argparse

from duequeue.cli.exit_codes import ExitCode
from duequeue.cli.facts import CRON_COLUMNS, cron_facts
from duequeue.cli.opening import NothingFound, add_queue, open_raw
from duequeue.cli.output import Output, add_output
from duequeue.cron.installing import CronStatus
from duequeue.queue import Queue


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = "List the crons that any node has installed in a queue."
    add_queue(parser)
    add_output(parser, "print only the prefixes")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """List the crons."""
    with open_raw(given) as queue:
        Output(given).items(map(cron_facts, queue.cron.list()), CRON_COLUMNS, key="prefix")
    return ExitCode.DONE


def installed(queue: Queue[bytes], prefix: str) -> CronStatus:
    """Return the cron with a prefix, or raise if none is installed."""
    found = next((each for each in queue.cron.list() if each.prefix == prefix), None)
    if found is None:
        raise NothingFound(f"no cron {prefix!r} is installed in the queue {queue.name!r}")
    return found
