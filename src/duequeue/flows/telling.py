"""What the flows tell of a batch; one look at the listeners each."""

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from duequeue.events.events import Buried, Delivered, LeaseLost
from duequeue.flows.context import Context
from duequeue.instants import MILLISECOND
from duequeue.leased import LeasedMessage
from duequeue.port.store import Burial, Claimed

T = TypeVar("T")


def tell_delivered(context: Context[T], claimed: Iterable[Claimed], now: int) -> None:
    """Tell what was leased."""
    if context.events.listeners:
        for each in claimed:
            lateness = (now - each.asked_at) * MILLISECOND
            context.events.emit(Delivered(context.name, each.key, each.attempt, lateness))


def tell_buried(
    context: Context[T],
    held: Iterable[Claimed | LeasedMessage[Any]],
    burials: Sequence[Burial],
    won: set[int],
) -> None:
    """Tell which of the burials came about; their keys are among what is held."""
    if context.events.listeners:
        keys = {each.lease.id: each.key for each in held}
        for burial in burials:
            if burial.lease.id in won:
                context.events.emit(Buried(context.name, keys[burial.lease.id], burial.reason))


def tell_lost(context: Context[T], messages: Iterable[LeasedMessage[Any]], won: set[int]) -> None:
    """Tell which leases were gone when they were needed."""
    if context.events.listeners:
        for message in messages:
            if message.lease.id not in won:
                context.events.emit(LeaseLost(context.name, message.key))
