"""`duequeue tail` follows the history of a queue, which says what happened to its messages."""

import argparse
from collections.abc import Iterator
from datetime import timedelta

from duequeue.cli.durations import add_duration
from duequeue.cli.exit_codes import ExitCode
from duequeue.cli.facts import SETTLED_COLUMNS, settled_facts
from duequeue.cli.numbers import positive
from duequeue.cli.opening import add_queue, open_raw
from duequeue.cli.output import Output, add_output
from duequeue.cli.recent import Recent
from duequeue.cli.stop_requests import Signals, listening_to_signals
from duequeue.defaults import FEW
from duequeue.errors import StoreUnavailable
from duequeue.settled import Settled

INTERVAL = timedelta(seconds=1)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = (
        "Print what happened to the last messages, and then to each further one, until Ctrl-C. "
        "Only programs that open the queue with history=True write this history."
    )
    add_queue(parser)
    parser.add_argument("--key", help="only messages with this key")
    parser.add_argument(
        "-n",
        dest="number",
        type=positive,
        default=FEW,
        help="begin with N rows (default: %(default)s)",
    )
    parser.add_argument("--no-follow", action="store_true", help="print these rows, and exit")
    add_duration(
        parser,
        "--interval",
        INTERVAL,
        "the time between two reads of the history",
    )
    add_output(parser)
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Print the rows, then those that come."""
    output = Output(given)
    with open_raw(given) as queue, listening_to_signals() as signals:
        recent = Recent(lambda limit: queue.history(limit, given.key), given.number)
        if given.no_follow:
            rows = recent.newest(given.number)
            output.items(map(settled_facts, rows), SETTLED_COLUMNS)
            return ExitCode.DONE if rows else ExitCode.NOTHING_FOUND
        following = _following(recent, given, output, signals)
        output.items(map(settled_facts, following), SETTLED_COLUMNS, live=True)
    return ExitCode.DONE


def _following(
    recent: Recent, given: argparse.Namespace, output: Output, signals: Signals
) -> Iterator[Settled]:
    """Return the last rows, and then those that are new at each look, until a signal comes."""
    rows = recent.newest(given.number)
    if not rows:
        output.talk("the history is empty; waiting for messages to be settled")
    yield from rows
    while signals.await_request(max(0.0, given.interval.total_seconds())) is None:
        try:
            yield from recent.news()
        except StoreUnavailable as error:
            output.talk(str(error))
