"""`duequeue forecast` counts the messages that fall due in the time ahead."""

import argparse
from typing import Any

from duequeue.cli.durations import add_duration
from duequeue.cli.exit_codes import ExitCode
from duequeue.cli.facts import at, named
from duequeue.cli.opening import add_queue, open_raw
from duequeue.cli.output import Column, Output, add_output
from duequeue.cli.when import instant, now, stamp
from duequeue.defaults import FORECAST_BUCKET, FORECAST_UNTIL
from duequeue.durations import duration_text
from duequeue.message import Bucket

LONGEST_BAR = 40


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = (
        "Count the messages that will fall due. Those that are due already count "
        "in the first line, and also as overdue."
    )
    add_queue(parser)
    add_duration(
        parser,
        "--bucket",
        FORECAST_BUCKET,
        "the time that each line covers",
    )
    parser.add_argument(
        "--until",
        type=instant,
        metavar="WHEN",
        help="how far to look: 7d from now, or a date and time "
        f"(default: {duration_text(FORECAST_UNTIL)})",
    )
    add_output(parser, "print only the times")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Count the messages."""
    until = given.until or now() + FORECAST_UNTIL
    with open_raw(given) as queue:
        buckets = queue.forecast(given.bucket, until)
    most = max(bucket.messages for bucket in buckets)
    columns = (
        at("begins_at", "FROM"),
        named("messages", is_number=True),
        named("overdue", is_number=True),
        Column("", lambda item: "█" * -(-item["messages"] * LONGEST_BAR // max(most, 1))),
    )
    Output(given).items(map(_facts, buckets), columns, key="begins_at")
    return ExitCode.DONE


def _facts(bucket: Bucket) -> dict[str, Any]:
    return {
        "begins_at": stamp(bucket.begins_at),
        "messages": bucket.messages,
        "overdue": bucket.overdue,
    }
