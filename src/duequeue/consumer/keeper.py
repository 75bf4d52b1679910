"""The keeper of a consumer settles messages in batches and keeps leases alive."""

import logging
import math
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from typing import TypeVar

from duequeue.clock import ManualClock
from duequeue.consumer import settling
from duequeue.consumer.handover import Handover
from duequeue.consumer.handover_async import AsyncHandover
from duequeue.consumer.roles import (
    AwaitUnsettled,
    CancelHandlers,
    ConsumerRole,
    RoleFlow,
    StartHandlers,
)
from duequeue.drive.actions import Flow, Pause
from duequeue.flows.context import Context
from duequeue.flows.emitting import emit_lost
from duequeue.flows.settling import give_back, one_lease_each
from duequeue.leased import LeasedMessage
from duequeue.port.store import Extended, Lease, Steps
from duequeue.verdict import Rules

T = TypeVar("T")
P = TypeVar("P", bound=LeasedMessage)

# Verdicts are gathered for this long, so that one statement settles many.
GATHER_SECONDS = 0.002
# A lease whose message is locked by another transaction is tried again this often, at least.
BUSY_SECONDS = 0.2

logger = logging.getLogger("duequeue.consumer")


class Keeper(ConsumerRole[T, P]):
    """Settles what handlers are done with, and extends the leases of everything else.

    On threads it also gives up messages whose handlers run for too long. On an event loop, the
    handler itself is cancelled.
    """

    def __init__(
        self, context: Context[T], handover: Handover[P] | AsyncHandover[P], rules: Rules
    ) -> None:
        super().__init__(context, handover)
        self._rules = rules

    def run(self) -> RoleFlow[None]:
        """Settle messages in batches and keep leases alive, until the last round."""
        clock, last_round, some_busy = self.context.clock, False, False
        with ExitStack() as at_the_end:
            if isinstance(clock, ManualClock):
                at_the_end.callback(clock.subscribe(self.handover.clock_moved))
            while not last_round:
                third = self.context.lease / 3 / 1000
                seconds = min(BUSY_SECONDS, third / 10) if some_busy else third
                last_round = yield AwaitUnsettled(min(seconds, self._seconds_to_timeout()))
                if not last_round:
                    yield Pause(GATHER_SECONDS)
                yield from self._give_up_late_handlers()
                yield from self._settle()
                some_busy = yield from self._extend()

    def _seconds_to_timeout(self) -> float:
        late = self.handover.workload.late
        if late is None:
            return math.inf
        with self.handover:
            return late.seconds_left()

    def _give_up_late_handlers(self) -> RoleFlow[None]:
        if self.handover.workload.late is None:
            return
        with self.handover as workload:
            overdue = workload.take_overdue()
        replaced = 0
        for message in overdue:
            verdict = settling.verdict_on_late(self.context, message, self._rules)
            with self.handover as workload:
                replaced += workload.give_up(message, verdict)
        if replaced:
            yield StartHandlers(replaced)
        if replaced < len(overdue) and not self.handover.workload.stopping:
            words = (
                "queue %r: too many handlers that timed out still run, so fewer threads are left"
            )
            logger.error(words, self.context.name)
        with self.handover as workload:
            unbegun = workload.take_waiting() if workload.stalled else []
        if unbegun:  # no thread is free here, but other consumers can handle them
            yield from self.tried("give messages back", give_back(self.context, unbegun))

    def _settle(self) -> RoleFlow[None]:
        with self.handover as workload:
            groups = settling.by_verdict(workload.take_done())
        for group in groups:
            flow = settling.settle(self.context, group)
            done = yield from self.tried("settle handled messages", flow)
            with self.handover as workload:
                workload.settled(group, done=done)

    def _extend(self) -> RoleFlow[bool]:
        """Extend leases, and return whether some have to be tried again soon."""
        with self.handover as workload:
            held = workload.held()
        lost: list[P] = []
        busy: list[P] = []
        yield from self.tried("extend leases", extend_leases(self.context, held, lost, busy))
        if lost:
            with self.handover as workload:
                newly_lost = workload.lose(lost)
            yield CancelHandlers(newly_lost, 0)
        return bool(busy)


def extend_leases(
    context: Context[T], messages: Sequence[P], lost: list[P], busy: list[P]
) -> Flow[None]:
    """Extend the leases that are a third over, in one statement.

    Add to `lost` those that are gone, and to `busy` those that another transaction has locked.
    """
    now = context.now()
    aging = [each for each in messages if each.lease_left(now) * 3 < context.lease * 2]
    for once in one_lease_each(aging, [message.lease.id for message in aging]):
        leases = [message.lease for message in once]
        extended, now = yield from context.consume_from_now(
            partial(_extend, context, leases), min(context.lease / 3000, context.retry.try_seconds)
        )
        for message in once:
            if message.lease.id in extended.won:
                message.extended_to(now + context.lease)
            elif message.lease.id in extended.busy:
                busy.append(message)
            elif not message.settled:
                logger.warning("queue %r: lost the lease of %r", context.name, message.key)
                lost.append(message)
        held = extended.won | extended.busy
        emit_lost(context, (each for each in once if not each.settled), held)


def _extend(context: Context[T], leases: list[Lease], now: int) -> Steps[Extended]:
    return context.store.extend(leases, now + context.lease)
