"""Events of a batch, made only if there are listeners, and notices of burials."""

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from duequeue.errors import StoreError
from duequeue.events.events import Buried, Delivered, Expired, LeaseLost
from duequeue.flows.context import Context
from duequeue.headers import decode_headers
from duequeue.instants import MILLISECOND, nearest_instant
from duequeue.leased import LeasedMessage
from duequeue.message import BurialNotice
from duequeue.port.store import Burial, Claimed, Expiry

T = TypeVar("T")


def emit_delivered(context: Context[T], claimed: Iterable[Claimed]) -> None:
    """Emit an event for each leased message."""
    for each in claimed:
        lateness = (each.lease.delivered_at - each.asked_at) * MILLISECOND
        context.events.emit(Delivered(context.name, each.key, each.attempt, lateness))


def emit_buried(
    context: Context[T],
    held: Iterable[Claimed | LeasedMessage[Any]],
    burials: Sequence[Burial],
    won: set[int],
) -> None:
    """Emit an event for each burial that won, and notify the consumer; `held` has the messages."""
    if not context.events.listeners and context.on_buried is None:
        return
    messages = {each.lease.id: each for each in held}
    for burial in burials:
        if burial.lease.id in won:
            message = messages[burial.lease.id]
            context.events.emit(Buried(context.name, message.key, burial.reason))
            if context.on_buried is not None:
                context.on_buried(_notice(context, message, burial))


def emit_expired(context: Context[T], expiries: Iterable[Expiry], won: set[int]) -> None:
    """Emit an event for each message that was dropped because it had expired."""
    if context.events.listeners:
        for lease, _ in expiries:
            if lease.id in won:
                context.events.emit(Expired(context.name, lease.key))


def emit_lost(context: Context[T], messages: Iterable[LeasedMessage[Any]], won: set[int]) -> None:
    """Emit an event for each lease that was gone when it was needed."""
    if context.events.listeners:
        for message in messages:
            if message.lease.id not in won:
                context.events.emit(LeaseLost(context.name, message.key))


def _notice(
    context: Context[T], message: Claimed | LeasedMessage[T], burial: Burial
) -> BurialNotice[T]:
    """Show as much of a message as possible, since a damaged one may be buried for that reason."""
    payload: T | None
    if isinstance(message, LeasedMessage):
        asked_at, payload, headers = message.due_millis, message.payload, message.headers
    else:
        asked_at = message.asked_at
        try:
            payload = context.codec.decode(message.payload)
        except Exception:  # noqa: BLE001 - by contract, any error means undecodable
            payload = None
        try:
            headers = decode_headers(message.headers, message.key)
        except StoreError:
            headers = {}
    due_at = nearest_instant(asked_at)
    about = (message.key, payload, due_at, burial.attempts, burial.reason, headers)
    return BurialNotice(context.name, *about)
