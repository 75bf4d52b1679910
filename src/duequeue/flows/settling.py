"""Ack, extend, release and bury one message, or many at a time."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import TypeVar

from duequeue.drive.actions import Flow
from duequeue.errors import InvalidArgument, InvalidType, StoreUnavailable
from duequeue.flows.arguments import delay_millis
from duequeue.flows.chunking import chunks
from duequeue.flows.context import Context
from duequeue.flows.emitting import emit_buried
from duequeue.instants import positive_millis
from duequeue.leased import LeasedMessage
from duequeue.port.store import Answer, Burial, Lease, Release, Steps

T = TypeVar("T")
Item = TypeVar("Item")


@dataclass
class ToSettle:
    """What becomes of many messages; delays and the spans of extensions are in milliseconds."""

    acks: list[Lease] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    releases: list[tuple[Lease, int]] = field(default_factory=list)
    burials: list[Burial] = field(default_factory=list)
    extensions: list[tuple[Lease, int]] = field(default_factory=list)


def settle_many(context: Context[T], asked: ToSettle) -> Flow[list[Lease]]:
    """Settle messages with one statement for each kind, and return the leases that still held."""
    won: list[Lease] = []
    for acks in one_lease_each(asked.acks, [lease.id for lease in asked.acks]):
        ids = yield from context.consume(partial(context.store.ack, acks, context.now()))
        won += [lease for lease in acks if lease.id in ids]
    for answers in one_lease_each(asked.answers, [each.lease.id for each in asked.answers]):
        for chunk in chunks(answers):
            ids = yield from store_answers(context, chunk, context.now())
            won += [each.lease for each in chunk if each.lease.id in ids]
    for releases in one_lease_each(asked.releases, [lease.id for lease, _ in asked.releases]):
        ids = yield from _release_many(context, releases)
        won += [lease for lease, _ in releases if lease.id in ids]
    for burials in one_lease_each(asked.burials, [each.lease.id for each in asked.burials]):
        ids = yield from store_burials(context, burials, context.now())
        won += [each.lease for each in burials if each.lease.id in ids]
    by_span: dict[int, list[Lease]] = {}
    for lease, millis in asked.extensions:
        by_span.setdefault(millis, []).append(lease)
    for millis, extended in by_span.items():
        for leases in one_lease_each(extended, [lease.id for lease in extended]):
            ids, _ = yield from context.consume_from_now(
                partial(_extend_unless_locked, context, leases, millis)
            )
            won += [lease for lease in leases if lease.id in ids]
    return won


def one_lease_each(items: list[Item], ids: list[int]) -> list[list[Item]]:
    """Cut items into lists that hold one lease of each message, because stores return ids.

    A message may be there twice: with a lease that is lost, and with a new one, which goes first.
    """
    if len(set(ids)) == len(items):
        return [items] if items else []
    lists, seen = list[list[Item]](), Counter[int]()
    for number, item in zip(reversed(ids), reversed(items), strict=True):
        if seen[number] == len(lists):
            lists.append([])
        lists[seen[number]].append(item)
        seen[number] += 1
    return lists


def _release_many(context: Context[T], releases: list[tuple[Lease, int]]) -> Flow[set[int]]:
    def release(now: int) -> Steps[set[int]]:
        return context.store.release([Release(lease, now + delay) for lease, delay in releases])

    won, now = yield from context.consume_from_now(release)
    if won:
        yield from context.announce(
            now + min(delay for lease, delay in releases if lease.id in won), now
        )
    return won


def give_back(context: Context[T], messages: Sequence[LeasedMessage[T]]) -> Flow[None]:
    """Give back messages that no handler has begun, as if they had never been delivered."""
    if messages:
        leases = [message.lease for message in messages]
        yield from context.consume(partial(context.store.give_back, leases))
        now = context.now()
        yield from context.announce(min(message.due_millis for message in messages), now)


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
        partial(_extend_unless_locked, context, [message.lease], millis)
    )
    if won:
        message.extended_to(now + millis)
    return bool(won)


def _extend_unless_locked(
    context: Context[T], leases: list[Lease], millis: int, now: int
) -> Steps[set[int]]:
    """Extend leases; if another transaction has locked a message, this is worth a retry."""
    won, busy = yield from context.store.extend(leases, now + millis)
    if busy:
        key = next(lease.key for lease in leases if lease.id in busy)
        raise StoreUnavailable(
            f"the lease of {key!r} in the queue {context.name!r} could not be extended, "
            "because another transaction has locked the message"
        )
    return won


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
    return _bury(context, message, burial_of(context, message.lease, message.attempt, reason))


def _bury(context: Context[T], message: LeasedMessage[T], burial: Burial) -> Flow[bool]:
    message.in_doubt = True
    won = yield from store_burials(context, [burial], context.now())
    message.in_doubt = False
    emit_buried(context, [message], [burial], won)
    return bool(won)


def store_answers(context: Context[T], answers: Sequence[Answer], now: int) -> Flow[set[int]]:
    """Settle and answer messages in one transaction, and wake those who wait for the responses."""
    sender = context.sender()
    store = partial(context.store.answer, answers, now, sender=sender)
    won = yield from context.consume(store)
    answered = [answer.lease.key for answer in answers if answer.lease.id in won]
    context.announce_answered(answered, sender)
    return won


def store_burials(context: Context[T], burials: Sequence[Burial], now: int) -> Flow[set[int]]:
    """Bury messages in one transaction, and wake those who wait for responses to them."""
    sender = context.sender()
    won = yield from context.consume(partial(context.store.bury, burials, now, sender=sender))
    refused = [burial.lease.key for burial in burials if burial.lease.id in won]
    context.announce_answered(refused, sender)
    return won


def burial_of(context: Context[T], lease: Lease, attempts: int, reason: str) -> Burial:
    """Return the burial of a message."""
    return Burial(lease, attempts, storable(reason), context.keep)


def storable(reason: str) -> str:
    """Escape what a database refuses as text, because a burial must not fail for its reason."""
    return reason.replace("\0", "\\0").encode(errors="backslashreplace").decode()
