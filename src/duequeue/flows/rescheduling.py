"""Gives a message in the queue another due time."""

from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from duequeue.drive.actions import Flow
from duequeue.errors import InvalidArgument, InvalidType
from duequeue.events.events import Offered
from duequeue.flows.context import Context
from duequeue.instants import due_millis, nearest_instant
from duequeue.message import checked_key
from duequeue.port.store import StoredMessage

T = TypeVar("T")


def reschedule(context: Context[T], key: str, due: datetime | timedelta) -> Flow[bool]:
    """Make a message due at another instant."""
    if due is None:
        raise InvalidType("due", "must be a datetime or a timedelta, not None; run_now is for now")
    now = context.now()
    return _reschedule(context, checked_key(key), due_millis(due, now), now)


def run_now(context: Context[T], key: str) -> Flow[bool]:
    """Make a message due now."""
    now = context.now()
    return _reschedule(context, checked_key(key), now, now)


def _reschedule(context: Context[T], key: str, due_at: int, now: int) -> Flow[bool]:
    found = yield from context.run(partial(context.store.reschedule, key, due_at, now))
    if found:
        yield from context.announce(due_at, now)
        if context.events.listeners:
            context.events.emit(Offered(context.name, created=0, updated=1, ignored=0))
    else:
        yield from _refuse_after_expiry(context, key, due_at)
    return found


def _refuse_after_expiry(context: Context[T], key: str, due_at: int) -> Flow[None]:
    """Raise if the message is there but would never be delivered at that instant."""
    stored = yield from context.run(partial(context.store.read, key))
    expires_at = stored.expires_at if isinstance(stored, StoredMessage) else None
    if expires_at is not None and expires_at <= due_at:
        raise InvalidArgument(
            "due",
            f"must be before the message expires, which is at {nearest_instant(expires_at)}; "
            "offer it again to let it expire later",
        )
