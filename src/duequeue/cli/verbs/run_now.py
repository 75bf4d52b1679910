"""`duequeue run-now` makes messages due now."""

import argparse

from duequeue.cli.keys import add_keys, for_each_key, keys_of
from duequeue.cli.opening import add_queue, open_raw
from duequeue.cli.output import Output, add_output


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = "Make messages due now, as `reschedule` does."
    add_keys(parser)
    add_queue(parser)
    add_output(parser)
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Make the messages due."""
    with open_raw(given) as queue:
        return for_each_key(keys_of(given), Output(given), queue.run_now, "due now")
