"""Counting the messages that fall due in the time ahead."""

from datetime import datetime, timedelta
from functools import partial
from typing import Any

from duequeue.drive.actions import Flow
from duequeue.errors import InvalidArgument, InvalidType
from duequeue.flows.context import Context
from duequeue.instants import nearest_instant, positive_millis, to_millis
from duequeue.message import Bucket
from duequeue.port.forecasting import Buckets

MOST_BUCKETS = 10_000


def forecast(
    context: Context[Any], bucket: timedelta, until: datetime | timedelta
) -> Flow[list[Bucket]]:
    """Count the messages in each bucket until an instant."""
    now = context.now()
    length = positive_millis(bucket, "bucket")
    end = to_millis(until, "until") if isinstance(until, datetime) else now + _span(until)
    if end <= now:
        raise InvalidArgument("until", f"must be later than now, but it is {until!r}")
    begins_at = now - now % length
    number = -(-(end - begins_at) // length)
    if number > MOST_BUCKETS:
        raise InvalidArgument(
            "bucket",
            f"must be longer, or until earlier: from now until {until!r} there are "
            f"{number:,} buckets of {bucket!r}, but the limit is {MOST_BUCKETS:,}",
        )
    return _forecast(context, now, Buckets(begins_at, length, end), number)


def _forecast(context: Context[Any], now: int, buckets: Buckets, number: int) -> Flow[list[Bucket]]:
    counts = yield from context.run_long(partial(context.store.forecast, now, buckets))
    return [
        Bucket(
            begins_at=nearest_instant(buckets.begins_at + each * buckets.length),
            messages=counts.ahead.get(each, 0) + (counts.overdue if each == 0 else 0),
            overdue=counts.overdue if each == 0 else 0,
        )
        for each in range(number)
    ]


def _span(until: timedelta) -> int:
    if not isinstance(until, timedelta):
        raise InvalidType("until", f"must be a datetime or a timedelta, not {type(until).__name__}")
    return positive_millis(until, "until")
