"""Looking at stored messages, counting those that fall due, and removing messages."""

from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from duequeue.drive.actions import Flow
from duequeue.errors import InvalidArgument, InvalidType, UndecodablePayload
from duequeue.flows.arguments import checked_limit
from duequeue.flows.context import Context
from duequeue.flows.listing import state_of, still_matches
from duequeue.headers import decode_headers
from duequeue.instants import (
    MILLISECOND,
    nearest_instant,
    positive_millis,
    stored_instant,
    to_millis,
)
from duequeue.message import Bucket, QueueStats, Snapshot, State, checked_key
from duequeue.port.burial_table import StoredBurial
from duequeue.port.listing import Buckets, Selection
from duequeue.port.store import StoredMessage
from duequeue.settled import Outcome, Settled

T = TypeVar("T")

MOST_BUCKETS = 10_000


def read(context: Context[T], key: str) -> Flow[Snapshot[T] | None]:
    """Look a message up in any state."""
    return _read(context, checked_key(key))


def contains(context: Context[T], key: str) -> Flow[bool]:
    """Return whether the key is in the queue."""
    return _contains(context, checked_key(key))


def stats(context: Context[T]) -> Flow[QueueStats]:
    """Count the messages by state."""
    counts = yield from context.run_long(partial(context.store.counts, context.now()))
    return QueueStats(
        total=counts.due + counts.leased + counts.future,
        due=counts.due,
        leased=counts.leased,
        future=counts.future,
        buried=counts.buried,
        oldest_due_at=_nearest_or_none(counts.oldest_due_at),
        next_due_at=_nearest_or_none(counts.next_due_at),
    )


def drop(context: Context[T], key: str) -> Flow[bool]:
    """Delete one message."""
    return _drop(context, checked_key(key))


def drop_all(context: Context[T], confirm: str) -> Flow[int]:
    """Delete every message, if the caller confirms the name of the queue."""
    if confirm != context.name:
        raise InvalidArgument(
            "confirm", f"must be the queue's own name, {context.name!r}, not {confirm!r}"
        )
    return context.run_long(partial(context.store.drop_all, context.now()))


def history(context: Context[T], limit: int, key: str | None) -> Flow[list[Settled]]:
    """List settled messages."""
    return _history(context, checked_limit(limit), None if key is None else checked_key(key))


def drop_if_selected(context: Context[T], key: str, selection: Selection) -> Flow[bool]:
    """Drop a message that was listed, unless it has changed so that it no longer matches."""
    if not (yield from still_matches(context, key, selection)):
        return False
    return (yield from _drop(context, key))


def _drop(context: Context[T], key: str) -> Flow[bool]:
    sender = context.sender()
    drop = partial(context.store.drop, key, context.now(), sender=sender)
    dropped = yield from context.run(drop)
    if dropped:
        context.announce_answered([key], sender)
    return dropped


def _read(context: Context[T], key: str) -> Flow[Snapshot[T] | None]:
    found = yield from context.run(partial(context.store.read, key))
    return None if found is None else _snapshot(context, key, found)


def _contains(context: Context[T], key: str) -> Flow[bool]:
    found = yield from context.run(partial(context.store.read, key))
    return isinstance(found, StoredMessage)


def _snapshot(context: Context[T], key: str, found: StoredMessage | StoredBurial) -> Snapshot[T]:
    try:
        payload = context.codec.decode(found.payload)
    except Exception as error:
        raise UndecodablePayload(f"the payload of {key!r} cannot be decoded: {error!r}") from error
    headers = decode_headers(found.headers, key)
    due_at = stored_instant(found.asked_at, key, "asked_at")
    if isinstance(found, StoredBurial):
        about = (State.BURIED, found.attempts, headers, None, found.reason)
        return Snapshot(key, payload, due_at, *about)
    state = state_of(found, context.now())
    is_leased = state is State.LEASED
    return Snapshot(
        key=key,
        payload=payload,
        due_at=due_at,
        state=state,
        attempts=found.attempts,
        headers=headers,
        leased_until=nearest_instant(found.leased_until) if is_leased else None,
        deliver_at=nearest_instant(found.due_at),
        expires_at=None if found.expires_at is None else nearest_instant(found.expires_at),
    )


def _nearest_or_none(millis: int | None) -> datetime | None:
    return None if millis is None else nearest_instant(millis)


def _span_or_none(millis: int | None) -> timedelta | None:
    return None if millis is None else millis * MILLISECOND


def _history(context: Context[T], limit: int, key: str | None) -> Flow[list[Settled]]:
    rows = yield from context.run_long(partial(context.store.settled, limit, key))
    return [
        Settled(
            key=row.key,
            due_at=nearest_instant(row.asked_at),
            delivered_at=_nearest_or_none(row.delivered_at),
            settled_at=nearest_instant(row.settled_at),
            attempts=row.attempts,
            outcome=Outcome(row.outcome),
            handler_time=_span_or_none(row.handler_ms),
        )
        for row in rows
    ]


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
