"""`duequeue reschedule` makes messages due at another time."""

import argparse
from functools import partial

from duequeue.cli.keys import add_keys, for_each_key, keys_of
from duequeue.cli.opening import add_queue, open_raw
from duequeue.cli.output import Output, add_output
from duequeue.cli.when import instant, stamp


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = (
        "Make messages due at another time. They keep their payload, headers and attempts, but a "
        "consumer that holds one loses its lease."
    )
    add_keys(parser)
    parser.add_argument(
        "--due",
        type=instant,
        required=True,
        metavar="WHEN",
        help="30m from now, or a date and time such as 2026-11-18T07:00:00+01:00",
    )
    add_queue(parser)
    add_output(parser)
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Reschedule the messages."""
    with open_raw(given) as queue:
        move = partial(queue.reschedule, due=given.due)
        return for_each_key(keys_of(given), Output(given), move, f"due at {stamp(given.due)}")
