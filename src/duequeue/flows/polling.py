"""Polls: look once, or wait until there is something to find."""

import logging
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from time import monotonic
from typing import TypeAlias, TypeVar

from duequeue.actions import Flow, Listen
from duequeue.bell import Bell
from duequeue.clock import Clock, ManualClock
from duequeue.errors import StoreError
from duequeue.flows.arguments import checked_limit, timeout_millis
from duequeue.flows.context import Context
from duequeue.flows.settling import storable
from duequeue.polling import Outlook, pause_before_next_look
from duequeue.store import Burial, Claimed

T = TypeVar("T")
D = TypeVar("D")

# How a face makes its deliveries: what was claimed, the payload, when, and until when.
Wrap: TypeAlias = Callable[[Claimed, T, int, int], D]

NOTHING_YET = -1

logger = logging.getLogger("duequeue")


def try_poll_many(context: Context[T], wrap: Wrap[T, D], limit: int) -> Flow[list[D]]:
    """Lease what is due now, at most `limit`."""
    return _look(context, wrap, checked_limit(limit))


def poll_many(
    context: Context[T], wrap: Wrap[T, D], limit: int, timeout: timedelta | float | None
) -> Flow[list[D]]:
    """Lease what is due, waiting for it if need be."""
    return _wait(context, wrap, checked_limit(limit), timeout_millis(timeout))


def _wait(
    context: Context[T], wrap: Wrap[T, D], limit: int, timeout: float | None
) -> Flow[list[D]]:
    began, now = monotonic(), context.now()
    began_at = now
    lookout, bell, interval = context.lookout, context.bell, context.poll_interval
    with _rung_by(context.clock, bell):
        heard = NOTHING_YET
        while True:
            rung, heard = bell.rings != heard, bell.rings
            if rung or lookout.take_turn(now, interval):
                found = yield from _look_for_all(context, wrap, limit, now)
                if found or limit == 0:
                    return found
                now = context.now()
            # Time passes by the injected clock or by the real one, whichever is faster: a test
            # may move its clock, and a machine's clock may be set back.
            passed = max((monotonic() - began) * 1000, now - began_at)
            left = None if timeout is None else timeout - passed
            pause = pause_before_next_look(Outlook(now, lookout.next_look, left))
            if pause is None:
                return []
            yield from _listen(context, heard, pause)
            now = context.now()


def _look_for_all(context: Context[T], wrap: Wrap[T, D], limit: int, now: int) -> Flow[list[D]]:
    """Look once on behalf of everybody who waits in this process."""
    found = yield from _look(context, wrap, limit)
    if len(found) == limit:
        context.bell.ring(now)  # there may be more: the next one's turn
    if not found:
        next_due = yield from context.run(partial(context.store.next_due, now))
        context.lookout.looked(now, context.poll_interval, next_due)
    return found


def _listen(context: Context[T], heard: int, seconds: float) -> Flow[None]:
    if context.alerts is not None:
        context.alerts.listen()
    try:
        yield Listen(context.bell, heard, context.lookout.next_look, seconds)
    except BaseException:
        context.bell.ring_all()  # the ring that was meant for us must not be lost
        raise


@contextmanager
def _rung_by(clock: Clock, bell: Bell) -> Iterator[None]:
    """Let a clock that is moved by hand wake those who wait for it."""
    if not isinstance(clock, ManualClock):
        yield
        return
    unsubscribe = clock.subscribe(bell.ring_all)
    try:
        yield
    finally:
        unsubscribe()


def _look(context: Context[T], wrap: Wrap[T, D], limit: int) -> Flow[list[D]]:
    found: list[D] = []
    while len(found) < limit:
        now = context.now()
        until, token = now + context.lease, secrets.randbits(62) + 1
        claim = partial(context.store.claim, limit - len(found), now, until, token)
        claimed = yield from context.run(claim)
        good, burials = _sort_out(context, claimed)
        found += [wrap(each, payload, now, until) for each, payload in good]
        if not burials:
            break
        try:
            yield from context.run(partial(context.store.bury, burials, now))
        except StoreError:
            # They stay leased and come again; what was claimed beside them must not wait.
            logger.exception("queue %r: could not bury %d messages", context.name, len(burials))
            break
    return found


def _sort_out(
    context: Context[T], claimed: list[Claimed]
) -> tuple[list[tuple[Claimed, T]], list[Burial]]:
    """Decode what was claimed; what cannot be delivered is to be buried."""
    good: list[tuple[Claimed, T]] = []
    burials: list[Burial] = []
    most = context.max_attempts
    for each in claimed:
        if most is not None and each.attempt > most:
            reason = f"max_attempts: delivered {each.attempt - 1} times without an ack"
            burials.append(Burial(each.lease, each.attempt - 1, reason))
            continue
        try:
            good.append((each, context.codec.decode(each.payload)))
        except Exception as error:  # noqa: BLE001 - by contract, any error means undecodable
            reason = storable(f"undecodable payload: {error!r}")
            burials.append(Burial(each.lease, each.attempt, reason))
    return good, burials
