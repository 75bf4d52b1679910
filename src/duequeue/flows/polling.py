"""Polls: look once, or wait until a message is due."""

import logging
import secrets
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from math import inf
from time import monotonic
from typing import TypeAlias, TypeVar

from duequeue.clock import ManualClock
from duequeue.drive.actions import Flow, Listen
from duequeue.drive.retrying import retrying
from duequeue.errors import StoreError
from duequeue.flows.arguments import checked_limit
from duequeue.flows.cleaning import Cleaning
from duequeue.flows.context import Context
from duequeue.flows.emitting import emit_buried, emit_delivered, emit_expired
from duequeue.flows.settling import storable
from duequeue.headers import decode_headers
from duequeue.instants import EARLIEST, LATEST, stored_instant, timeout_millis
from duequeue.port.store import Burial, Claimed, Expiry, Operation, Steps
from duequeue.process.contact import one_line
from duequeue.retry_policy import RetryPolicy
from duequeue.wakeups.next_look import Outlook, Turn, pause_before_next_look

T = TypeVar("T")
D = TypeVar("D")
R = TypeVar("R")

# How many of the messages that are due first are searched for expired ones at a time.
EXPIRED_AT_ONCE = 1000

# How a face makes a delivery from a claimed message, its payload, and the end of its lease.
Wrap: TypeAlias = Callable[[Claimed, T, int], D]

logger = logging.getLogger("duequeue")


def try_poll_many(context: Context[T], wrap: Wrap[T, D], limit: int) -> Flow[list[D]]:
    """Lease what is due now, at most `limit`."""
    most = checked_limit(limit)
    if context.cleaning is not None:
        return _clean_and_look(context, wrap, most, context.cleaning)
    return _look(context, wrap, most)


def poll_many(
    context: Context[T], wrap: Wrap[T, D], limit: int, timeout: timedelta | float | None
) -> Flow[list[D]]:
    """Lease what is due, waiting for it if need be."""
    most = checked_limit(limit)
    millis = None if timeout is None else timeout_millis(timeout)
    return _wait(context, wrap, most, millis) if most else _look(context, wrap, most)


def _wait(
    context: Context[T], wrap: Wrap[T, D], limit: int, timeout: float | None
) -> Flow[list[D]]:
    """Take turns with the others who wait; on leaving, wake another to look instead."""
    bell, next_look, clock = context.bell, context.next_look, context.clock
    # A clock that is moved by hand wakes those who wait for it.
    unsubscribe = clock.subscribe(bell.ring_all) if isinstance(clock, ManualClock) else None
    bell.inform(next_look.expect)
    try:
        waiting = None if context.alerts is None else context.alerts.waiting
        if waiting is None:
            return (yield from _look_in_turns(context, wrap, limit, timeout))
        with waiting():
            return (yield from _look_in_turns(context, wrap, limit, timeout))
    finally:
        bell.ring(next_look.at)
        bell.stop_informing(next_look.expect)
        if unsubscribe is not None:
            unsubscribe()


def _look_in_turns(
    context: Context[T], wrap: Wrap[T, D], limit: int, timeout: float | None
) -> Flow[list[D]]:
    began, now = monotonic(), context.now()
    gives_up_at = inf if timeout is None else began + timeout / 1000
    began_at = now
    next_look, bell = context.next_look, context.bell
    first_look = True
    while True:
        heard = bell.rings
        turn = next_look.take_turn(now, context.poll_interval)
        if first_look:
            turn, first_look = Turn.EXPECTED, False
        if turn is not None:
            found = yield from _look_for_all(context, wrap, limit, now, turn, gives_up_at)
            if found:
                return found
            now = context.now()
        # Time passes by the injected clock or by the real one, whichever is faster, because a test
        # may move its clock, and a machine's clock may be set back.
        passed = max((monotonic() - began) * 1000, now - began_at)
        left = None if timeout is None else timeout - passed
        pause = pause_before_next_look(Outlook(now, next_look.at, left))
        if pause is None:
            return []
        if context.alerts is not None:
            context.alerts.listen(pause)
        yield Listen(bell, heard, next_look.at, pause)
        now = context.now()


def _look_for_all(
    context: Context[T], wrap: Wrap[T, D], limit: int, now: int, turn: Turn, gives_up_at: float
) -> Flow[list[D]]:
    """Look once on behalf of everybody who waits in this process.

    A regular look that finds nothing to claim is a single read.
    """
    # Another waiter has to look at once, unless this look ends well and learns when to look next.
    look_again_at: int | None = now
    try:
        if context.cleaning is not None:
            yield from context.cleaning.run(context.name, context.store, now)
        if turn is Turn.REGULAR:
            earliest = yield from context.consume(
                partial(context.store.earliest_due, now), gives_up_at
            )
            if earliest is None or earliest > now:
                look_again_at = earliest
                return []
        found = yield from _look(context, wrap, limit, gives_up_at)
        if not found:
            look_again_at = yield from context.consume(
                partial(context.store.next_due, now), gives_up_at
            )
        return found
    finally:
        if look_again_at is not None:
            context.next_look.expect(look_again_at)


def _clean_and_look(
    context: Context[T], wrap: Wrap[T, D], limit: int, cleaning: Cleaning
) -> Flow[list[D]]:
    yield from cleaning.run(context.name, context.store, context.now())
    return (yield from _look(context, wrap, limit))


def _look(
    context: Context[T], wrap: Wrap[T, D], limit: int, gives_up_at: float = inf
) -> Flow[list[D]]:
    found: list[tuple[Claimed, T, int]] = []
    claims = 0
    while len(found) < limit:
        token = secrets.randbits(62) + 1
        # With messages in hand, try once: they must not wait until the store can be reached.
        policy = RetryPolicy.never() if found else context.retry
        try:
            claim = partial(_claim, context, limit - len(found), token)
            claimed, now = yield from retrying(
                policy, claim, gives_up_at=gives_up_at, consumes=True, contact=context.contact
            )
        except StoreError as error:
            if not found:
                raise
            words = "queue %r: could not look for more messages: %s"
            logger.warning(words, context.name, one_line(error))
            break
        claims += 1
        good, burials, expired = _sort_out(context, claimed, now)
        found += [(each, payload, now + context.lease) for each, payload in good]
        if context.events.listeners:
            emit_delivered(context, [each for each, _ in good], now)
        if not burials and not expired:
            break
        try:
            if burials:
                sender = context.sender()
                bury = partial(context.store.bury, burials, now, sender=sender)
                won = yield from _once(context, bury, gives_up_at)
                refused = [burial.lease.key for burial in burials if burial.lease.id in won]
                context.announce_answered(refused, sender)
                _report_burials(context, claimed, burials, won)
            if expired:
                many_more = len(expired) == len(claimed)
                yield from _expire(context, expired, now, gives_up_at, many_more=many_more)
        except StoreError as error:
            # They stay leased and come again, so what was claimed with them need not wait.
            removed = len(burials) + len(expired)
            words = "queue %r: could not bury or drop %d messages, so they come again: %s"
            logger.warning(words, context.name, removed, one_line(error))
            break
    if claims > 1:  # a later claim may have found earlier messages
        found.sort(key=_place)
    return [wrap(*each) for each in found]


def _report_burials(
    context: Context[T], claimed: list[Claimed], burials: list[Burial], won: set[int]
) -> None:
    """Log the burials that won, because no caller asked for them, and notify the listeners."""
    for burial in burials:
        if burial.lease.id in won:
            words = "queue %r: buried %r: %s"
            logger.error(words, context.name, burial.lease.key, " ".join(burial.reason.split()))
    emit_buried(context, claimed, burials, won)


def _once(context: Context[T], operation: Operation[R], gives_up_at: float) -> Flow[R]:
    """Run an operation once, without retries."""
    return retrying(
        RetryPolicy.never(),
        operation,
        gives_up_at=gives_up_at,
        consumes=True,
        contact=context.contact,
    )


def _expire(
    context: Context[T], expired: list[Expiry], now: int, gives_up_at: float, *, many_more: bool
) -> Flow[None]:
    """Drop expired messages, and look for more of them if there may be many."""
    if many_more:
        token = secrets.randbits(62) + 1
        until = now + context.lease
        claim = partial(context.store.claim_expired, EXPIRED_AT_ONCE, now, until, token)
        expired = expired + (yield from _once(context, claim, gives_up_at))
    expired.sort(key=_key)
    expire = partial(context.store.expire, expired, now)
    won = yield from _once(context, expire, gives_up_at)
    emit_expired(context, expired, won)


def _key(expiry: Expiry) -> str:
    return expiry.lease.key


def _place(found: tuple[Claimed, T, int]) -> tuple[int, int]:
    """Return the place of a message in due order."""
    return found[0].due_at, found[0].lease.id


def _claim(context: Context[T], limit: int, token: int) -> Steps[tuple[list[Claimed], int]]:
    """Claim from now on, and return that instant, because retries must not eat into a lease."""
    now = context.now()
    return (yield from context.store.claim(limit, now, now + context.lease, token)), now


def _sort_out(
    context: Context[T], claimed: list[Claimed], now: int
) -> tuple[list[tuple[Claimed, T]], list[Burial], list[Expiry]]:
    """Decode claimed messages, and find those to bury or drop instead of delivering them."""
    good: list[tuple[Claimed, T]] = []
    burials: list[Burial] = []
    expired: list[Expiry] = []
    most = context.max_attempts
    for each in claimed:
        if each.expires_at is not None and each.expires_at <= now:
            expired.append(Expiry(each.lease, each.attempt - 1))
            continue
        if most is not None and each.attempt > most:
            reason = f"max_attempts: delivered {each.attempt - 1} times without an ack"
            burials.append(Burial(each.lease, each.attempt - 1, reason, context.keep))
            continue
        try:
            if each.headers is not None or not EARLIEST <= each.asked_at <= LATEST:
                _check_row(each)
            good.append((each, context.codec.decode(each.payload)))
        except StoreError as error:
            reason = storable(f"damaged row: {error}")
            burials.append(Burial(each.lease, each.attempt, reason, context.keep))
        except Exception as error:  # noqa: BLE001 - by contract, any error means undecodable
            reason = storable(f"undecodable payload: {error!r}")
            burials.append(Burial(each.lease, each.attempt, reason, context.keep))
    return good, burials, expired


def _check_row(each: Claimed) -> None:
    """Raise if somebody has damaged the row by hand."""
    decode_headers(each.headers, each.key)
    stored_instant(each.asked_at, each.key, "asked_at")
