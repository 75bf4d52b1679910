"""Looking after buried messages."""

from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from duequeue.drive.actions import Flow
from duequeue.errors import InvalidType
from duequeue.flows.arguments import checked_limit
from duequeue.flows.context import Context
from duequeue.flows.listing import burial_id, burial_text
from duequeue.flows.settling import storable
from duequeue.headers import shown_headers
from duequeue.instants import due_millis, nearest_instant, to_millis
from duequeue.message import BuriedMessage, checked_key
from duequeue.port.burial_table import StoredBurial
from duequeue.port.listing import BEFORE_ALL, BurialId, BurialSelection

T = TypeVar("T")

# How many burials are revived in one transaction.
CHUNK = 500


def buried(
    context: Context[T], limit: int, after: str | None, reason: str | None
) -> Flow[list[BuriedMessage[T]]]:
    """List burials."""
    selection = BurialSelection(
        limit=checked_limit(limit),
        after=BEFORE_ALL if after is None else burial_id(after, "after"),
        reason=_checked_reason(reason),
    )
    return _buried(context, selection)


def revive(
    context: Context[T], key: str, due: datetime | timedelta | None, burial: str | None
) -> Flow[bool]:
    """Put a burial back."""
    now = context.now()
    wanted = None if burial is None else burial_id(burial, "id")
    return _revive(context, checked_key(key), due_millis(due, now), now, wanted)


def revive_all(
    context: Context[T], reason: str | None, due: datetime | timedelta | None
) -> Flow[int]:
    """Put many burials back."""
    now = context.now()
    return _revive_all(context, _checked_reason(reason), due_millis(due, now), now)


def delete_buried(context: Context[T], burial: str) -> Flow[bool]:
    """Delete one burial."""
    return context.run(partial(context.store.burials.delete, burial_id(burial, "id")))


def purge_buried(context: Context[T], before: datetime) -> Flow[int]:
    """Delete the burials before an instant."""
    return context.run_long(partial(context.store.burials.purge, to_millis(before, "before")))


def _buried(context: Context[T], selection: BurialSelection) -> Flow[list[BuriedMessage[T]]]:
    found = yield from context.run_long(partial(context.store.burials.listed, selection))
    return [_buried_message(context, each) for each in found]


def _revive(
    context: Context[T], key: str, due_at: int, now: int, burial: BurialId | None
) -> Flow[bool]:
    revived = yield from context.run(
        partial(context.store.burials.revive, key, due_at, now, burial)
    )
    if revived:
        yield from context.announce(due_at, now)
    return revived


def _revive_all(context: Context[T], reason: str, due_at: int, now: int) -> Flow[int]:
    total = 0
    chunk = yield from first_chunk(context, reason)
    while chunk is not None:
        revived, chunk = yield from revive_chunk(context, chunk, due_at, now)
        total += revived
    return total


def first_chunk(context: Context[T], reason: str) -> Flow[BurialSelection | None]:
    """Return the first burials to revive, if any.

    It and its successors end with the last burial of now, since messages may be buried again.
    """
    until = yield from context.run_long(context.store.burials.last)
    return None if until is None else BurialSelection(CHUNK, BEFORE_ALL, until, reason)


def revive_chunk(
    context: Context[T], chunk: BurialSelection, due_at: int, now: int
) -> Flow[tuple[int, BurialSelection | None]]:
    """Put a chunk of burials back, and return how many, and the next chunk, if there is one."""
    revived, last = yield from context.run_long(
        partial(context.store.burials.revive_all, chunk, due_at, now)
    )
    if revived:
        yield from context.announce(due_at, now)
    return revived, None if last is None else chunk._replace(after=last)


def _buried_message(context: Context[T], found: StoredBurial) -> BuriedMessage[T]:
    """Show as much of a burial as possible, because users look here for the cause of a failure."""
    payload: T | None
    try:
        payload = context.codec.decode(found.payload)
    except Exception:  # noqa: BLE001 - by contract, any error means undecodable
        payload = None
    return BuriedMessage(
        key=found.key,
        payload=payload,
        raw=found.payload,
        due_at=nearest_instant(found.asked_at),
        attempts=found.attempts,
        reason=found.reason,
        buried_at=nearest_instant(found.buried_at),
        headers=shown_headers(found.headers, found.key),
        id=burial_text(BurialId(found.buried_at, found.number)),
    )


def _checked_reason(reason: str | None) -> str:
    if reason is not None and not isinstance(reason, str):
        raise InvalidType("reason", f"must be a str or None, not {type(reason).__name__}")
    return storable(reason or "")
