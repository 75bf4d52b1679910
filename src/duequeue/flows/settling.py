"""Ack, extend, release and bury; each returns whether it won."""

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import TypeVar

from duequeue.drive.actions import Flow
from duequeue.errors import InvalidArgument, InvalidType, StoreUnavailable
from duequeue.flows.arguments import delay_millis
from duequeue.flows.context import Context
from duequeue.flows.emitting import emit_buried
from duequeue.instants import positive_millis
from duequeue.leased import LeasedMessage
from duequeue.port.store import Burial, Lease, Release, Steps

T = TypeVar("T")


def ack_many(context: Context[T], messages: Sequence[LeasedMessage[T]]) -> Flow[int]:
    """Delete the messages whose leases still hold, and return how many."""
    for message in messages:
        if not isinstance(message, LeasedMessage):
            found = type(message).__name__
            raise InvalidType("deliveries", f"must be Delivery objects from a poll, not {found}")
        if message.queue_name != context.name:
            raise InvalidArgument(
                "deliveries",
                f"must come from the queue {context.name!r}; "
                f"{message.key!r} comes from {message.queue_name!r}",
            )
    for message in messages:
        if message.handler_began is not None:
            message.handler_ended(context.now())
        message.settled = message.in_doubt = True
        message.settled_within = context.is_borrowed
    return _ack(context, messages)


def _ack(context: Context[T], messages: Sequence[LeasedMessage[T]]) -> Flow[int]:
    if not messages:
        return 0
    leases = [message.lease for message in messages]
    won = yield from context.consume(partial(context.store.ack, leases, context.now()))
    for message in messages:
        message.in_doubt = False
    return len(won)


def ack(context: Context[T], message: LeasedMessage[T]) -> Flow[bool]:
    """Delete the message."""
    if message.handler_began is not None:
        message.handler_ended(context.now())
    message.in_doubt = True
    won = yield from context.consume(partial(context.store.ack, [message.lease], context.now()))
    message.in_doubt = False
    return bool(won)


def extend(context: Context[T], message: LeasedMessage[T], lease: timedelta | None) -> Flow[bool]:
    """Hold the message for a full lease from now on."""
    millis = context.lease if lease is None else positive_millis(lease, "lease")
    return _extend(context, message, millis)


def _extend(context: Context[T], message: LeasedMessage[T], millis: int) -> Flow[bool]:
    won, now = yield from context.consume_from_now(
        lambda now: _extend_unless_locked(context, message.lease, now + millis)
    )
    if won:
        message.extended_to(now + millis)
    return won


def _extend_unless_locked(context: Context[T], lease: Lease, until: int) -> Steps[bool]:
    """Extend a lease; if another transaction has locked the message, this is worth a retry."""
    won, busy = yield from context.store.extend([lease], until)
    if busy:
        raise StoreUnavailable(
            f"the lease of {lease.key!r} in the queue {context.name!r} could not be extended, "
            "because another transaction has locked the message"
        )
    return bool(won)


def release(context: Context[T], message: LeasedMessage[T], delay: timedelta) -> Flow[bool]:
    """Give the message back."""
    return _release(context, message, delay_millis(delay))


def _release(context: Context[T], message: LeasedMessage[T], delay: int) -> Flow[bool]:
    message.in_doubt = True
    won, now = yield from context.consume_from_now(
        lambda now: context.store.release([Release(message.lease, now + delay)])
    )
    message.in_doubt = False
    if won:
        yield from context.announce(now + delay, now)
    return bool(won)


def bury(context: Context[T], message: LeasedMessage[T], reason: str) -> Flow[bool]:
    """Move the message out of the queue, with a reason."""
    if not isinstance(reason, str):
        raise InvalidType("reason", f"must be a str, not {type(reason).__name__}")
    if message.handler_began is not None:
        message.handler_ended(context.now())
    about = (message.attempt, storable(reason), context.keep)
    return _bury(context, message, Burial(message.lease, *about))


def _bury(context: Context[T], message: LeasedMessage[T], burial: Burial) -> Flow[bool]:
    message.in_doubt = True
    won = yield from store_burials(context, [burial], context.now())
    message.in_doubt = False
    emit_buried(context, [message], [burial], won)
    return bool(won)


def store_burials(context: Context[T], burials: Sequence[Burial], now: int) -> Flow[set[int]]:
    """Bury messages in one transaction, and wake those who wait for responses to them."""
    sender = context.sender()
    won = yield from context.consume(partial(context.store.bury, burials, now, sender=sender))
    refused = [burial.lease.key for burial in burials if burial.lease.id in won]
    context.announce_answered(refused, sender)
    return won


def storable(reason: str) -> str:
    """Escape what a database refuses as text, because a burial must not fail for its reason."""
    return reason.replace("\0", "\\0").encode(errors="backslashreplace").decode()
