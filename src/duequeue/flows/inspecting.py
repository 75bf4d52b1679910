"""Looking at stored messages, and removing them."""

from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from duequeue.drive.actions import Flow
from duequeue.errors import StoreError, UndecodablePayload
from duequeue.flows.arguments import checked_limit, due_millis
from duequeue.flows.context import Context
from duequeue.headers import decode_headers
from duequeue.instants import nearest_instant, stored_instant, to_millis
from duequeue.message import BuriedMessage, QueueStats, Snapshot, State, checked_key
from duequeue.port.store import StoredBurial, StoredMessage
from duequeue.settled import Outcome, Settled

T = TypeVar("T")


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
    key = checked_key(key)
    return context.run(partial(context.store.drop, key, context.now()))


def drop_all(context: Context[T], confirm: str) -> Flow[int]:
    """Delete every message, if the caller confirms the name of the queue."""
    if confirm != context.name:
        raise ValueError(f"confirm must be the queue's own name, {context.name!r}, not {confirm!r}")
    return context.run_long(partial(context.store.drop_all, context.now()))


def buried(context: Context[T], limit: int) -> Flow[list[BuriedMessage[T]]]:
    """List burials."""
    return _buried(context, checked_limit(limit))


def revive(context: Context[T], key: str, due: datetime | timedelta | None) -> Flow[bool]:
    """Put a burial back."""
    now = context.now()
    return _revive(context, checked_key(key), due_millis(due, now), now)


def purge_buried(context: Context[T], before: datetime) -> Flow[int]:
    """Delete the burials before an instant."""
    return context.run_long(partial(context.store.purge_buried, to_millis(before, "before")))


def history(context: Context[T], limit: int) -> Flow[list[Settled]]:
    """List settled messages."""
    return _history(context, checked_limit(limit))


def _read(context: Context[T], key: str) -> Flow[Snapshot[T] | None]:
    found = yield from context.run(partial(context.store.read, key))
    return None if found is None else _snapshot(context, key, found)


def _contains(context: Context[T], key: str) -> Flow[bool]:
    found = yield from context.run(partial(context.store.read, key))
    return isinstance(found, StoredMessage)


def _buried(context: Context[T], limit: int) -> Flow[list[BuriedMessage[T]]]:
    found = yield from context.run_long(partial(context.store.buried, limit))
    return [_buried_message(context, each) for each in found]


def _revive(context: Context[T], key: str, due_at: int, now: int) -> Flow[bool]:
    revived = yield from context.run(partial(context.store.revive, key, due_at, now))
    if revived:
        yield from context.announce(due_at, now)
    return revived


def _snapshot(context: Context[T], key: str, found: StoredMessage | StoredBurial) -> Snapshot[T]:
    try:
        payload = context.codec.decode(found.payload)
    except Exception as error:
        raise UndecodablePayload(f"the payload of {key!r} cannot be decoded: {error!r}") from error
    state = _state(found, context.now())
    return Snapshot(
        key=key,
        payload=payload,
        due_at=stored_instant(found.asked_at, key, "asked_at"),
        state=state,
        attempts=found.attempts,
        headers=decode_headers(found.headers, key),
        leased_until=_lease_end(found, key) if state is State.LEASED else None,
        reason=found.reason if isinstance(found, StoredBurial) else None,
        expires_at=None if isinstance(found, StoredBurial) else _nearest_or_none(found.expires_at),
    )


def _lease_end(found: StoredMessage | StoredBurial, key: str) -> datetime | None:
    if isinstance(found, StoredBurial):
        return None
    return stored_instant(found.leased_until, key, "leased_until")


def _nearest_or_none(millis: int | None) -> datetime | None:
    return None if millis is None else nearest_instant(millis)


def _state(found: StoredMessage | StoredBurial, now: int) -> State:
    if isinstance(found, StoredBurial):
        return State.BURIED
    if found.leased_until > now:
        return State.LEASED
    return State.DUE if found.due_at <= now else State.FUTURE


def _buried_message(context: Context[T], found: StoredBurial) -> BuriedMessage[T]:
    """Show as much of a burial as possible, because users look here for what is wrong."""
    payload: T | None
    try:
        payload = context.codec.decode(found.payload)
    except Exception:  # noqa: BLE001 - by contract, any error means undecodable
        payload = None
    try:
        headers = decode_headers(found.headers, found.key)
    except StoreError:
        headers = {}
    return BuriedMessage(
        key=found.key,
        payload=payload,
        raw=found.payload,
        due_at=nearest_instant(found.asked_at),
        attempts=found.attempts,
        reason=found.reason,
        buried_at=nearest_instant(found.buried_at),
        headers=headers,
    )


def _history(context: Context[T], limit: int) -> Flow[list[Settled]]:
    rows = yield from context.run_long(partial(context.store.settled, limit))
    return [
        Settled(
            key=row.key,
            due_at=nearest_instant(row.asked_at),
            delivered_at=_nearest_or_none(row.delivered_at),
            settled_at=nearest_instant(row.settled_at),
            attempts=row.attempts,
            outcome=Outcome(row.outcome),
        )
        for row in rows
    ]
