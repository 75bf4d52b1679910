"""Hands messages to a coroutine function as they fall due, on tasks."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, Generic, Self, TypeAlias

from typing_extensions import TypeVar

from duequeue import defaults
from duequeue.consumer import roles, settling
from duequeue.consumer.burial_hook import AsyncBurialHook, AsyncOnBuried, refuse_plain_function
from duequeue.consumer.feeder import Feeder
from duequeue.consumer.handover_async import AsyncHandover
from duequeue.consumer.keeper import Keeper
from duequeue.consumer.roles import RoleAction, RoleFlow
from duequeue.consumer.solitude import Caution, solitude
from duequeue.consumer.stopping import Stopping
from duequeue.delivery_async import AsyncDelivery
from duequeue.drive.actions import Action, Pause
from duequeue.drive.steps import drive_async
from duequeue.errors import InvalidType
from duequeue.events.events import ReportOutcome
from duequeue.flows.arguments import check_grace
from duequeue.flows.context import Context
from duequeue.port.store import Claimed
from duequeue.process.lifetime import Lifetime
from duequeue.process.stop_signals import answered_in_the_loop_by
from duequeue.verdict import Rules, Verdict, as_raised

T = TypeVar("T", default=Any)

AsyncHandler: TypeAlias = Callable[[AsyncDelivery[T]], Awaitable[object]]


class AsyncConsumer(Generic[T]):
    """The counterpart of `Consumer`, on the tasks of one event loop.

    A handler whose lease is lost, or that outlives the grace time of a stop, is cancelled.
    """

    def __init__(
        self,
        context: Context[T],
        perform: Callable[[Action], Awaitable[object]],
        deliver: Callable[[Context[T], Claimed, T, int], AsyncDelivery[T]],
        lifetime: Lifetime,
        handler: AsyncHandler[T],
        *,
        register: Callable[["AsyncConsumer[T]"], None],
        concurrency: int,
        batch: int,
        rules: Rules,
        on_buried: AsyncOnBuried[T] | None,
    ) -> None:
        refuse_plain_function(handler, "handler")
        self._hook = None if on_buried is None else AsyncBurialHook(on_buried)
        # Its polls obey max_attempts too, so that a message that kept crashing the process is
        # buried instead of fetched again.
        self._context = replace(
            context,
            max_attempts=rules.max_attempts,
            extends_leases=True,
            fetches_ahead=rules.max_attempts != 1,  # as the only attempt, it must be handled
            on_buried=None if self._hook is None else self._hook.add,
        )
        self._perform = perform
        self._lifetime = lifetime
        self._handler = handler
        self._rules = rules
        caution = Caution[AsyncDelivery[T]](rules.max_attempts, concurrency)
        self._handover: AsyncHandover[AsyncDelivery[T]] = AsyncHandover(batch, caution)
        feeder = Feeder(self._context, self._handover, partial(deliver, self._context))
        keeper = Keeper(self._context, self._handover, rules)
        self._stopping = Stopping(self._context, self._handover)
        self._handling: dict[int, asyncio.Task[None]] = {}
        self._winding_up: asyncio.Task[None] | None = None
        self._feeder = asyncio.create_task(self._drive(feeder.run()))
        self._keeper = asyncio.create_task(self._drive(keeper.run()))
        self._workers = [asyncio.create_task(self._run_handlers()) for _ in range(concurrency)]
        self._hook_task = None if self._hook is None else asyncio.create_task(self._hook.run())
        register(self)

    @property
    def in_hand(self) -> int:
        """The number of messages that it leases: fetched, running, or not settled yet."""
        return self._handover.workload.in_hand

    @property
    def stopped(self) -> bool:
        """Whether it has stopped, and so handles no more messages."""
        return self._handover.workload.stopped

    async def run(self, grace: timedelta = defaults.GRACE) -> None:
        """Wait until stopped: SIGTERM and SIGINT stop in good order, a second one at once."""
        check_grace(grace)

        def on_signal() -> None:
            self._begin_to_stop(timedelta(0) if self._handover.workload.stopping else grace)

        self._lifetime.check_process()
        with answered_in_the_loop_by(on_signal):
            await self._handover.await_stopped()

    async def stop(self, grace: timedelta = defaults.GRACE) -> None:
        """Let running handlers finish within the grace time, and give the rest back at once.

        A task of the consumer cannot wait for its own end. So when a handler calls this, it returns
        at once, and the stop goes on in the background. So does a stop that is cancelled.
        """
        check_grace(grace)
        if not self._lifetime.is_here:
            return  # a fork has none of its tasks
        self._begin_to_stop(grace)
        if self._winding_up is not None and not self._called_from_within:
            await asyncio.shield(self._winding_up)

    def _begin_to_stop(self, grace: timedelta) -> None:
        with self._handover as workload:
            first = workload.stop(hard=grace <= timedelta(0))
        if first:
            self._winding_up = asyncio.create_task(self._wind_up(grace.total_seconds()))

    @property
    def _called_from_within(self) -> bool:
        """Whether the caller runs in a task that a stop has to wait for."""
        own = (self._feeder, self._keeper, self._winding_up, self._hook_task, *self._workers)
        return asyncio.current_task() in own

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.stop()

    # The workers.

    async def _run_handlers(self) -> None:
        worker, events = asyncio.current_task(), self._context.events
        assert worker is not None  # noqa: S101 - a coroutine of ours always runs in a task
        while (delivery := await self._handover.next()) is not None:
            if self._context.keeps_history:
                delivery.handler_began = self._context.now()
            if events.listeners:
                with events.handling(delivery) as report:
                    verdict = await self._handle(delivery, worker, report)
            else:
                verdict = await self._handle(delivery, worker)
            self._handover.finish(delivery, verdict)

    async def _handle(
        self,
        delivery: AsyncDelivery[T],
        worker: "asyncio.Task[None]",
        report: ReportOutcome | None = None,
    ) -> Verdict | None:
        self._handling[id(delivery)] = worker
        outcome: object
        try:
            outcome = await self._call(delivery)
            if outcome is not None:
                outcome = as_raised(outcome)
            if self._rules.respond:
                outcome = settling.as_answer(self._context, delivery, outcome)
        except asyncio.CancelledError as error:
            if self._feeder.cancelling():
                raise  # the loop ends, and every task of ours with it
            outcome = error
        except (Exception, SystemExit) as error:  # noqa: BLE001 - it is the handler's verdict
            outcome = error
        finally:
            del self._handling[id(delivery)]
            while worker.cancelling():
                worker.uncancel()  # every cancellation was meant for the handler alone
        verdict = settling.verdict_on(self._context, delivery, outcome, self._rules)
        if report is not None:
            report(outcome, verdict)
        return verdict

    async def _call(self, delivery: AsyncDelivery[T]) -> object:
        if self._rules.timeout is None:
            return await self._started(delivery)
        limit = asyncio.timeout(self._rules.timeout.total_seconds())
        try:
            async with limit:
                return await self._started(delivery)
        except TimeoutError as error:
            if limit.expired():
                raise settling.late_error(self._rules) from error
            raise

    def _started(self, delivery: AsyncDelivery[T]) -> Awaitable[object]:
        result = self._handler(delivery)
        if not inspect.isawaitable(result):
            raise InvalidType(
                "handler",
                text=f"the handler returned {type(result).__name__}, which cannot be awaited: use "
                "a coroutine function, or Queue with a plain function",
            )
        return result

    # How tasks fill the roles.

    async def _wind_up(self, grace_seconds: float) -> None:
        try:
            await self._drive(self._stopping.run(grace_seconds))
        finally:
            with self._handover as workload:
                workload.end()
            solitude.leave(self._handover)

    async def _drive(self, role: RoleFlow[None]) -> None:
        await drive_async(role, self._perform_for_role)

    async def _perform_for_role(self, action: RoleAction) -> object:
        match action:
            case roles.AwaitRoom():
                return await self._handover.await_room()
            case roles.AwaitUnsettled(seconds):
                return await self._handover.await_unsettled(seconds)
            case roles.AwaitFeeder():
                await asyncio.wait([self._feeder])
            case roles.AwaitKeeper():
                await asyncio.wait([self._keeper])
            case roles.AwaitHandlers(seconds):
                await self._handover.await_handlers(seconds)
            case roles.CancelHandlers(messages, seconds):
                await self._cancel_handlers(messages, seconds)
            case roles.StartHandlers():
                pass  # after a cancelled handler, its task goes on with the next message
            case roles.EndHook(seconds):
                await self._end_hook(seconds)
            case Pause(seconds):
                await self._handover.rest(seconds)
            case _:
                return await self._perform(action)
        return None

    async def _cancel_handlers(self, messages: list[AsyncDelivery[T]], seconds: float) -> None:
        for message in messages:
            if (worker := self._handling.get(id(message))) is not None:
                worker.cancel()
        if seconds > 0:
            await asyncio.wait(self._workers, timeout=seconds)

    async def _end_hook(self, seconds: float) -> None:
        if self._hook is not None and self._hook_task is not None:
            self._hook.end()
            await asyncio.wait([self._hook_task], timeout=max(0.0, seconds))
            self._hook_task.cancel()
