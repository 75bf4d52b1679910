"""Events of a batch, made only if there are listeners."""

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from duequeue.events.events import Buried, Delivered, LeaseLost
from duequeue.flows.context import Context
from duequeue.instants import MILLISECOND
from duequeue.leased import LeasedMessage
from duequeue.port.store import Burial, Claimed

T = TypeVar("T")


def emit_delivered(context: Context[T], claimed: Iterable[Claimed], now: int) -> None:
    """Emit an event for each leased message."""
    for each in claimed:
        lateness = (now - each.asked_at) * MILLISECOND
        context.events.emit(Delivered(context.name, each.key, each.attempt, lateness))


def emit_buried(
    context: Context[T],
    held: Iterable[Claimed | LeasedMessage[Any]],
    burials: Sequence[Burial],
    won: set[int],
) -> None:
    """Emit an event for each burial that won; `held` has the keys."""
    if context.events.listeners:
        keys = {each.lease.id: each.key for each in held}
        for burial in burials:
            if burial.lease.id in won:
                context.events.emit(Buried(context.name, keys[burial.lease.id], burial.reason))


def emit_lost(context: Context[T], messages: Iterable[LeasedMessage[Any]], won: set[int]) -> None:
    """Emit an event for each lease that was gone when it was needed."""
    if context.events.listeners:
        for message in messages:
            if message.lease.id not in won:
                context.events.emit(LeaseLost(context.name, message.key))
