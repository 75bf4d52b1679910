"""Polls: look once, or wait until a message is due."""

import logging
import secrets
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from itertools import starmap
from math import inf
from time import monotonic
from typing import TypeAlias, TypeVar

from duequeue.clock import ManualClock
from duequeue.drive.actions import Flow, Listen
from duequeue.drive.retrying import retrying
from duequeue.errors import StoreError
from duequeue.flows import removing
from duequeue.flows.arguments import checked_limit
from duequeue.flows.cleaning import Cleaning
from duequeue.flows.context import Context
from duequeue.flows.emitting import emit_delivered
from duequeue.flows.settling import storable
from duequeue.headers import decode_headers
from duequeue.instants import EARLIEST, LATEST, stored_instant, timeout_millis
from duequeue.port.fencing import IN_HAND, LEAST, LOST_IN_HAND, RANDOM_BITS, losses_of, only_fetched
from duequeue.port.store import Burial, Claimed, Expiry, Steps
from duequeue.process.contact import one_line
from duequeue.retry_policy import RetryPolicy
from duequeue.wakeups.next_look import Turn, pause_before_next_look

T = TypeVar("T")
D = TypeVar("D")

# A poll gives up after so many claims whose leases have ended before the store answers.
MOST_LATE_CLAIMS = 3

# How a face makes a delivery from a claimed message, its payload, and the end of its lease.
Wrap: TypeAlias = Callable[[Claimed, T, int], D]
# What `Wrap` is given.
Found: TypeAlias = tuple[Claimed, T, int]

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
        pause = pause_before_next_look(now, next_look.at, left)
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
    """Lease what is due now, at most `limit`, and bury or drop what must not be delivered."""
    found: list[Found[T]] = []
    claims, late_claims, goes_on = 0, 0, True
    smallest = LEAST if context.fetches_ahead else LEAST + IN_HAND
    while goes_on and len(found) < limit:
        token = secrets.randbits(RANDOM_BITS) * 10 + smallest
        # With messages in hand, try once: they must not wait until the store can be reached.
        policy = RetryPolicy.never() if found else context.retry
        try:
            claim = partial(_claim, context, limit - len(found), token)
            claimed, now = yield from retrying(
                policy, claim, gives_up_at=gives_up_at, consumes=True, contact=context.contact
            )
        except StoreError as error:
            if not found or context.is_borrowed:
                raise
            words = "queue %r: could not look for more messages: %s"
            logger.warning(words, context.name, one_line(error))
            claimed, now = [], context.now()
        claims += 1
        good, burials, expired = _sort_out(context, claimed, now)
        for each, payload in good:
            found.append((each, payload, now + context.lease))
        goes_on = bool(burials or expired) and (
            yield from removing.remove(context, claimed, burials, expired, now, gives_up_at)
        )
        if found and found[0][2] <= (now := context.now()):  # the first lease ends first
            ended = [claimed for claimed, _, until in found if until <= now]
            found = [each for each in found if each[2] > now]
            yield from removing.give_back(context, ended, gives_up_at)
            late_claims += not goes_on
            goes_on = late_claims < MOST_LATE_CLAIMS
            if not goes_on and not found:
                raise removing.too_late(context, late_claims)
    if claims > 1:  # a later claim may have found earlier messages
        found.sort(key=_place)
    if context.events.listeners:
        emit_delivered(context, [claimed for claimed, _, _ in found])
    return list(starmap(wrap, found))


def _place(found: Found[T]) -> tuple[int, int]:
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
        if most is not None and each.attempt > most and not only_fetched(each.lease.token):
            reason = _too_often(context, each)
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


def _too_often(context: Context[T], each: Claimed) -> str:
    reason = f"max_attempts: delivered {each.attempt - 1} times without an ack"
    if context.extends_leases and losses_of(each.lease.token) == LOST_IN_HAND:
        return f"{reason}; the last time, its process died while it was handled, or lost its lease"
    return reason


def _check_row(each: Claimed) -> None:
    """Raise if somebody has damaged the row by hand."""
    decode_headers(each.headers, each.key)
    stored_instant(each.asked_at, each.key, "asked_at")
