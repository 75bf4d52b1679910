"""Gives a message in the queue another due time."""

from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from duequeue.drive.actions import Flow
from duequeue.events.events import Offered
from duequeue.flows.arguments import due_millis
from duequeue.flows.context import Context
from duequeue.message import checked_key

T = TypeVar("T")


def reschedule(context: Context[T], key: str, due: datetime | timedelta) -> Flow[bool]:
    """Make a message due at another instant."""
    if due is None:
        raise TypeError("due must be a datetime or a timedelta, not None; run_now is for now")
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
    return found
