"""Hands messages to a handler as they fall due, on threads."""

import inspect
import logging
import math
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from time import monotonic
from types import TracebackType
from typing import Generic, Self, TypeAlias, TypeVar

from duequeue.clock import ManualClock
from duequeue.consumer import settling
from duequeue.consumer.handover import Handover
from duequeue.consumer.workload import (
    CLEAN_UP_SECONDS,
    GATHER_SECONDS,
    GRACE,
    PAUSE_AFTER_ERROR,
    Stopped,
)
from duequeue.delivery import Delivery
from duequeue.drive.actions import Action, Flow, Pause, Run
from duequeue.drive.steps import drive
from duequeue.errors import QueueClosed, StoreUnavailable
from duequeue.events.events import StoreFailed, Tell
from duequeue.flows import polling
from duequeue.flows.arguments import check_grace
from duequeue.flows.context import Context
from duequeue.process.lifetime import Lifetime
from duequeue.process.stop_signals import answered_by
from duequeue.verdict import Rules, Verdict
from duequeue.wakeups.waiting import wait_for

T = TypeVar("T")

Handler: TypeAlias = Callable[[Delivery[T]], object]

logger = logging.getLogger("duequeue.consumer")


class Consumer(Generic[T]):
    """Fetches ahead, runs the handler on several threads, keeps leases alive, acks in batches.

    Made by `Queue.consume`. Stop it, or use it in a `with` block; `run` blocks until a signal.
    """

    def __init__(
        self,
        context: Context[T],
        perform: Callable[[Action], object],
        wrap: polling.Wrap[T, Delivery[T]],
        lifetime: Lifetime,
        handler: Handler[T],
        *,
        concurrency: int,
        batch: int,
        rules: Rules,
    ) -> None:
        if any(map(inspect.iscoroutinefunction, (handler, type(handler).__call__))):
            raise TypeError("handler must be a plain function: AsyncQueue consumes with coroutines")
        # What fails here too often is not fetched once more either, not even after a crash.
        self._context = replace(context, max_attempts=rules.max_attempts)
        self._perform = perform
        self._wrap = wrap
        self._lifetime = lifetime
        self._handler = handler
        self._rules = rules
        self._hands: Handover[Delivery[T]] = Handover(batch)
        self._looking = False
        self._gives_up_at = math.inf
        self._hard = threading.Event()
        self._stopped = threading.Event()
        self._feeder = self._thread(self._feed, "feeder")
        self._keeper = self._thread(self._keep, "keeper")
        self._workers = {
            self._thread(self._run_handlers, f"handler-{n}") for n in range(concurrency)
        }

    @property
    def in_hand(self) -> int:
        """How many messages are leased by it: fetched, running, or handled but not yet settled."""
        return self._hands.in_hand

    def run(self, grace: timedelta = GRACE) -> None:
        """Block until stopped: SIGTERM and SIGINT stop in good order, a second one at once."""
        check_grace(grace)

        def on_signal() -> None:
            self._begin_to_stop(timedelta(0) if self._hands.stopping else grace)

        self._lifetime.check_process()
        with answered_by(on_signal):
            while not self._stopped.is_set():
                wait_for(self._stopped, 3600)

    def stop(self, grace: timedelta = GRACE) -> None:
        """Finish what runs within the grace time, and give everything else back at once.

        Called by a handler, it only begins to.
        """
        check_grace(grace)
        if not self._lifetime.is_here:
            return  # a fork has none of its threads
        if threading.current_thread() in self._workers:
            self._begin_to_stop(grace)
            return
        if grace <= timedelta(0):
            self._hard.set()
        if not self._hands.stop():
            self._stopped.wait()
            return
        try:
            self._wind_up(grace.total_seconds())
        except BaseException:  # such as a second Ctrl-C
            self._hard.set()
            self._wind_up(0)
            raise
        finally:
            self._stopped.set()

    def _begin_to_stop(self, grace: timedelta) -> None:
        # On another thread: a handler cannot wait for itself to end, and a signal may have
        # interrupted whoever holds our lock.
        threading.Thread(target=self.stop, args=(grace,), name="duequeue-stop").start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    # The feeder: one poll at a time, however many handlers.

    def _feed(self) -> None:
        while (room := self._hands.await_room()) > 0:
            try:
                poll = polling.poll_many(self._context, self._wrap, room, None)
                self._hands.add(drive(poll, self._perform_unless_stopping), room)
            except Stopped:
                return
            except QueueClosed:
                self._hands.end()
                self._stopped.set()
                return
            except Exception as error:  # a consumer outlives whatever goes wrong
                logger.exception("queue %r: polling failed", self._context.name)
                self._context.events.emit(StoreFailed(self._context.name, error))
                self._hard.wait(PAUSE_AFTER_ERROR)

    def _perform_unless_stopping(self, action: Action) -> object:
        # Between two operations, a poll may have messages in hand that it still has to return.
        begins, self._looking = not self._looking, isinstance(action, Run)
        if self._hands.stopping and (begins or not self._looking):
            raise Stopped
        return self._perform(action)

    # The workers.

    def _run_handlers(self) -> None:
        events = self._context.events
        delivery = self._hands.next()
        while delivery is not None:
            if events.listeners:
                with events.handling(delivery) as tell:
                    verdict = self._handle(delivery, tell)
            else:
                verdict = self._handle(delivery)
            delivery = self._hands.next(delivery, verdict)

    def _handle(self, delivery: Delivery[T], tell: Tell | None = None) -> Verdict | None:
        outcome: object
        try:
            outcome = self._handler(delivery)
        except BaseException as error:  # noqa: BLE001 - the worker outlives even sys.exit
            outcome = error
        verdict = settling.verdict_on(self._context, delivery, outcome, self._rules)
        if tell is not None:
            tell(outcome, verdict)
        return verdict

    # The keeper: settles in batches and keeps leases alive.

    def _keep(self) -> None:
        clock = self._context.clock
        unsubscribe = (
            clock.subscribe(self._hands.clock_moved) if isinstance(clock, ManualClock) else None
        )
        try:
            while True:
                last_round = self._await_keeping()
                self._settle()
                self._extend()
                if last_round:
                    return
        finally:
            if unsubscribe is not None:
                unsubscribe()

    def _await_keeping(self) -> bool:
        """Wait until there is something to settle or to extend; tell if it is the last time."""
        if self._hands.await_unsettled(self._context.lease / 3 / 1000):
            return True
        self._hard.wait(GATHER_SECONDS)
        return False

    def _settle(self) -> None:
        for group in settling.by_verdict(self._hands.take_done()):
            done = self._tried(settling.settle(self._context, group))
            self._hands.settled(group, done=done)

    def _extend(self) -> None:
        lost: list[Delivery[T]] = []
        if self._tried(settling.keep(self._context, self._hands.held(), lost)) and lost:
            self._hands.lose(lost)

    # What stopping takes.

    def _wind_up(self, grace_seconds: float) -> None:
        grace_ends_at = monotonic() + grace_seconds
        self._gives_up_at = grace_ends_at + CLEAN_UP_SECONDS
        self._context.bell.ring_all()
        self._feeder.join()  # before giving back: its last poll would fetch it all again
        self._tried(settling.give_back(self._context, self._hands.take_waiting()))
        self._hands.await_handlers(grace_ends_at - monotonic(), self._hard)
        overdue = self._hands.give_up_running()
        self._keeper.join()
        self._tried(settling.abandon(self._context, overdue))

    def _tried(self, flow: Flow[None]) -> bool:
        """Run a flow; what fails is logged, and tried again later or left to the lease."""
        try:
            drive(flow, self._perform_in_time)
        except QueueClosed:
            return True  # there is nobody left to tell
        except Exception as error:
            logger.exception("queue %r: the store did not answer", self._context.name)
            self._context.events.emit(StoreFailed(self._context.name, error))
            self._hard.wait(PAUSE_AFTER_ERROR)
            return False
        return True

    def _perform_in_time(self, action: Action) -> object:
        if not isinstance(action, Pause):
            return self._perform(action)
        wait_for(self._hard, min(action.seconds, self._gives_up_at - monotonic()))
        if self._hard.is_set() or monotonic() >= self._gives_up_at:
            raise StoreUnavailable("stopped before the store answered")
        return None

    def _thread(self, target: Callable[[], None], name: str) -> threading.Thread:
        full_name = f"duequeue-{self._context.name}-{name}"
        thread = threading.Thread(target=target, name=full_name, daemon=True)
        thread.start()
        return thread
