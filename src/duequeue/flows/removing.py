"""What a poll does with messages that it claims but must not deliver."""

import logging
from functools import partial
from typing import TypeVar

from duequeue.drive.actions import Flow
from duequeue.drive.retrying import retrying
from duequeue.errors import StoreError, StoreUnavailable
from duequeue.flows.context import Context
from duequeue.flows.emitting import emit_buried, emit_expired
from duequeue.instants import MILLISECOND, words_for
from duequeue.port.fencing import new_token
from duequeue.port.store import Burial, Claimed, Expiry, Operation
from duequeue.process.contact import one_line
from duequeue.retry_policy import RetryPolicy

T = TypeVar("T")
R = TypeVar("R")

# How many of the messages that are due first are searched for expired ones at a time.
EXPIRED_AT_ONCE = 1000

logger = logging.getLogger("duequeue")


def remove(
    context: Context[T],
    claimed: list[Claimed],
    burials: list[Burial],
    expired: list[Expiry],
    now: int,
    gives_up_at: float,
) -> Flow[bool]:
    """Bury and drop messages, and return whether that succeeded.

    Within a caller's transaction it raises, or else the caller might commit the half of it.
    """
    try:
        if burials:
            yield from _bury(context, claimed, burials, now, gives_up_at)
        if expired:
            many_more = len(expired) == len(claimed)
            yield from _expire(context, expired, now, gives_up_at, many_more=many_more)
    except StoreError as error:
        if context.is_borrowed:
            raise
        # They stay leased and come again, so what was claimed with them need not wait.
        removed = len(burials) + len(expired)
        words = "queue %r: could not bury or drop %d messages, so they come again: %s"
        logger.warning(words, context.name, removed, one_line(error))
        return False
    return True


def _bury(
    context: Context[T],
    claimed: list[Claimed],
    burials: list[Burial],
    now: int,
    gives_up_at: float,
) -> Flow[None]:
    sender = context.sender()
    store_burials = partial(context.store.bury, burials, now, sender=sender)
    won = yield from _once(context, store_burials, gives_up_at)
    refused = [burial.lease.key for burial in burials if burial.lease.id in won]
    context.announce_answered(refused, sender)
    _report_burials(context, claimed, burials, won)


def _report_burials(
    context: Context[T], claimed: list[Claimed], burials: list[Burial], won: set[int]
) -> None:
    """Log the burials that won, because no caller asked for them, and notify the listeners."""
    for burial in burials:
        if burial.lease.id in won:
            words = "queue %r: buried %r: %s"
            logger.error(words, context.name, burial.lease.key, " ".join(burial.reason.split()))
    emit_buried(context, claimed, burials, won)


def _expire(
    context: Context[T], expired: list[Expiry], now: int, gives_up_at: float, *, many_more: bool
) -> Flow[None]:
    """Drop expired messages, and look for more of them if there may be many."""
    if many_more:
        token = new_token()
        until = now + context.lease
        claim = partial(context.store.claim_expired, EXPIRED_AT_ONCE, now, until, token)
        expired = expired + (yield from _once(context, claim, gives_up_at))
    expired.sort(key=_key)
    remove = partial(context.store.expire, expired, now)
    won = yield from _once(context, remove, gives_up_at)
    emit_expired(context, expired, won)


def _key(expiry: Expiry) -> str:
    return expiry.lease.key


def give_back(context: Context[T], ended: list[Claimed], gives_up_at: float) -> Flow[None]:
    """Give back messages whose leases are over already, so that they can be claimed again.

    If this fails, they come again anyway, but the attempt counts.
    """
    leases = [each.lease for each in ended]
    try:
        yield from _once(context, partial(context.store.give_back, leases), gives_up_at)
        yield from context.announce(min(each.due_at for each in ended), context.now())
    except StoreError as error:
        if context.is_borrowed:
            raise
        words = "queue %r: could not give back %d messages, so they come again: %s"
        logger.warning(words, context.name, len(leases), one_line(error))


def too_late(context: Context[T], times: int) -> StoreUnavailable:
    """Return the error of a poll whose leases always end before the store answers."""
    lease = words_for(context.lease * MILLISECOND)
    return StoreUnavailable(
        f"queue {context.name!r}: {times} times, the store took longer to lease "
        f"messages than the lease of {lease} lasts; use a longer lease"
    )


def _once(context: Context[T], operation: Operation[R], gives_up_at: float) -> Flow[R]:
    """Run an operation once, without retries."""
    return retrying(
        RetryPolicy.never(),
        operation,
        gives_up_at=gives_up_at,
        consumes=True,
        contact=context.contact,
    )
