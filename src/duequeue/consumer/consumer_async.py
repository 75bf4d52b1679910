"""Hands messages to a coroutine as they fall due, on tasks."""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from time import monotonic
from types import TracebackType
from typing import Generic, Self, TypeAlias, TypeVar

from duequeue.clock import ManualClock
from duequeue.consumer import settling
from duequeue.consumer.handover_async import AsyncHandover
from duequeue.consumer.workload import (
    CLEAN_UP_SECONDS,
    GATHER_SECONDS,
    GRACE,
    PAUSE_AFTER_ERROR,
    Stopped,
)
from duequeue.delivery import AsyncDelivery
from duequeue.drive.actions import Action, Flow, Pause, Run
from duequeue.drive.steps import drive_async
from duequeue.errors import QueueClosed, StoreUnavailable
from duequeue.events.events import StoreFailed, Tell
from duequeue.flows import polling
from duequeue.flows.arguments import check_grace
from duequeue.flows.context import Context
from duequeue.process.lifetime import Lifetime
from duequeue.process.stop_signals import answered_in_the_loop_by
from duequeue.verdict import Rules, Verdict

T = TypeVar("T")

AsyncHandler: TypeAlias = Callable[[AsyncDelivery[T]], Awaitable[object]]

logger = logging.getLogger("duequeue.consumer")


class AsyncConsumer(Generic[T]):
    """The same as `Consumer`, on the tasks of one event loop.

    A handler whose lease is lost, or that outlives the grace time of a stop, is cancelled.
    """

    def __init__(
        self,
        context: Context[T],
        perform: Callable[[Action], Awaitable[object]],
        wrap: polling.Wrap[T, AsyncDelivery[T]],
        lifetime: Lifetime,
        handler: AsyncHandler[T],
        *,
        concurrency: int,
        batch: int,
        rules: Rules,
    ) -> None:
        # What fails here too often is not fetched once more either, not even after a crash.
        self._context = replace(context, max_attempts=rules.max_attempts)
        self._perform = perform
        self._wrap = wrap
        self._lifetime = lifetime
        self._handler = handler
        self._rules = rules
        self._hands: AsyncHandover[AsyncDelivery[T]] = AsyncHandover(batch)
        self._handling: dict[int, asyncio.Task[None]] = {}
        self._stops: set[asyncio.Task[None]] = set()
        self._hard = asyncio.Event()
        self._stopped = asyncio.Event()
        self._looking = False
        self._gives_up_at = math.inf
        self._winding_up: asyncio.Task[None] | None = None
        self._feeder = asyncio.create_task(self._feed())
        self._keeper = asyncio.create_task(self._keep())
        self._workers = [asyncio.create_task(self._run_handlers()) for _ in range(concurrency)]

    @property
    def in_hand(self) -> int:
        """How many messages are leased by it: fetched, running, or handled but not yet settled."""
        return self._hands.in_hand

    async def run(self, grace: timedelta = GRACE) -> None:
        """Wait until stopped: SIGTERM and SIGINT stop in good order, a second one at once."""
        check_grace(grace)

        def on_signal() -> None:
            self._begin_to_stop(timedelta(0) if self._hands.stopping else grace)

        self._lifetime.check_process()
        with answered_in_the_loop_by(on_signal):
            await self._stopped.wait()

    async def stop(self, grace: timedelta = GRACE) -> None:
        """Finish what runs within the grace time, and give everything else back at once.

        Called by a handler, it only begins to; so it does if it is cancelled.
        """
        check_grace(grace)
        if not self._lifetime.is_here:
            return  # a fork has none of its tasks
        if asyncio.current_task() in self._workers:
            self._begin_to_stop(grace)
            return
        if grace <= timedelta(0):
            self._hard.set()
        if self._hands.stop():
            self._winding_up = asyncio.create_task(self._wind_up(grace.total_seconds()))
            await asyncio.shield(self._winding_up)
        else:
            await self._stopped.wait()

    def _begin_to_stop(self, grace: timedelta) -> None:
        # In a task of its own: a handler cannot wait for itself to end.
        self._stops.add(asyncio.create_task(self.stop(grace)))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()

    # The feeder: one poll at a time, however many handlers.

    async def _feed(self) -> None:
        while (room := await self._hands.await_room()) > 0:
            try:
                poll = polling.poll_many(self._context, self._wrap, room, None)
                self._hands.add(await drive_async(poll, self._perform_unless_stopping), room)
            except Stopped:
                return
            except QueueClosed:
                self._hands.end()
                self._stopped.set()
                return
            except Exception as error:  # a consumer outlives whatever goes wrong
                logger.exception("queue %r: polling failed", self._context.name)
                self._context.events.emit(StoreFailed(self._context.name, error))
                await self._pause(PAUSE_AFTER_ERROR)

    async def _perform_unless_stopping(self, action: Action) -> object:
        # Between two operations, a poll may have messages in hand that it still has to return.
        begins, self._looking = not self._looking, isinstance(action, Run)
        if self._hands.stopping and (begins or not self._looking):
            raise Stopped
        return await self._perform(action)

    # The workers.

    async def _run_handlers(self) -> None:
        worker, events = asyncio.current_task(), self._context.events
        assert worker is not None  # noqa: S101 - a coroutine of ours always runs in a task
        while (delivery := await self._hands.next()) is not None:
            if events.listeners:
                with events.handling(delivery) as tell:
                    verdict = await self._handle(delivery, worker, tell)
            else:
                verdict = await self._handle(delivery, worker)
            self._hands.finish(delivery, verdict)

    async def _handle(
        self, delivery: AsyncDelivery[T], worker: "asyncio.Task[None]", tell: Tell | None = None
    ) -> Verdict | None:
        self._handling[id(delivery)] = worker
        outcome: object
        try:
            outcome = await self._handler(delivery)
        except asyncio.CancelledError as error:
            if self._feeder.cancelling():
                raise  # the loop ends, and every task of ours with it
            outcome = error
        except (Exception, SystemExit) as error:  # noqa: BLE001 - it is the handler's verdict
            outcome = error
        finally:
            del self._handling[id(delivery)]
            while worker.cancelling():
                worker.uncancel()  # whoever cancelled, it was for the handler alone
        verdict = settling.verdict_on(self._context, delivery, outcome, self._rules)
        if tell is not None:
            tell(outcome, verdict)
        return verdict

    def _lose(self, lost: list[AsyncDelivery[T]]) -> None:
        """Cancel the handlers of messages that are no longer ours, each of them once."""
        lost = [delivery for delivery in lost if not delivery.lost]
        self._hands.lose(lost)
        for delivery in lost:
            if (worker := self._handling.get(id(delivery))) is not None:
                worker.cancel()

    # The keeper: settles in batches and keeps leases alive.

    async def _keep(self) -> None:
        clock = self._context.clock
        unsubscribe = (
            clock.subscribe(self._hands.clock_moved) if isinstance(clock, ManualClock) else None
        )
        try:
            while True:
                last_round = await self._await_keeping()
                await self._settle()
                await self._extend()
                if last_round:
                    return
        finally:
            if unsubscribe is not None:
                unsubscribe()

    async def _await_keeping(self) -> bool:
        """Wait until there is something to settle or to extend; tell if it is the last time."""
        if await self._hands.await_unsettled(self._context.lease / 3 / 1000):
            return True
        await self._pause(GATHER_SECONDS)
        return False

    async def _settle(self) -> None:
        for group in settling.by_verdict(self._hands.take_done()):
            done = await self._tried(settling.settle(self._context, group))
            self._hands.settled(group, done=done)

    async def _extend(self) -> None:
        lost: list[AsyncDelivery[T]] = []
        if await self._tried(settling.keep(self._context, self._hands.held(), lost)):
            self._lose(lost)

    # What stopping takes.

    async def _wind_up(self, grace_seconds: float) -> None:
        grace_ends_at = monotonic() + grace_seconds
        self._gives_up_at = grace_ends_at + CLEAN_UP_SECONDS
        try:
            self._context.bell.ring_all()
            await self._feeder  # before giving back: its last poll would fetch it all again
            await self._tried(settling.give_back(self._context, self._hands.take_waiting()))
            await self._hands.await_handlers(grace_ends_at - monotonic(), self._hard)
            overdue = self._hands.give_up_running()
            self._lose(overdue)
            await self._keeper
            await asyncio.wait(self._workers, timeout=CLEAN_UP_SECONDS)
            await self._tried(settling.abandon(self._context, overdue))
        finally:
            self._stopped.set()

    async def _tried(self, flow: Flow[None]) -> bool:
        """Run a flow; what fails is logged, and tried again later or left to the lease."""
        try:
            await drive_async(flow, self._perform_in_time)
        except QueueClosed:
            return True  # there is nobody left to tell
        except Exception as error:
            logger.exception("queue %r: the store did not answer", self._context.name)
            self._context.events.emit(StoreFailed(self._context.name, error))
            await self._pause(PAUSE_AFTER_ERROR)
            return False
        return True

    async def _perform_in_time(self, action: Action) -> object:
        if not isinstance(action, Pause):
            return await self._perform(action)
        await self._pause(min(action.seconds, self._gives_up_at - monotonic()))
        if self._hard.is_set() or monotonic() >= self._gives_up_at:
            raise StoreUnavailable("stopped before the store answered")
        return None

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._hard.wait()
