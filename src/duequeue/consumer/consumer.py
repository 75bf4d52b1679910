"""Hands messages to a handler as they fall due, on threads."""

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import count
from typing import Any, Generic, Self, TypeAlias
from weakref import WeakSet

from typing_extensions import TypeVar

from duequeue import defaults
from duequeue.consumer import roles, settling
from duequeue.consumer.burial_hook import BurialHook, OnBuried, refuse_coroutine_function
from duequeue.consumer.feeder import Feeder
from duequeue.consumer.handover import Handover
from duequeue.consumer.keeper import Keeper
from duequeue.consumer.late_handlers import LateHandlers
from duequeue.consumer.roles import RoleAction, RoleFlow
from duequeue.consumer.solitude import Caution, solitude
from duequeue.consumer.stopping import Stopping
from duequeue.delivery import Delivery
from duequeue.drive.actions import Action, Pause
from duequeue.drive.steps import drive
from duequeue.errors import InvalidArgument, InvalidType
from duequeue.events.events import ReportOutcome
from duequeue.flows.arguments import check_grace
from duequeue.flows.context import Context
from duequeue.port.store import Claimed
from duequeue.process.lifetime import Lifetime
from duequeue.process.stop_signals import answered_by
from duequeue.verdict import Rules, Verdict, as_raised

T = TypeVar("T", default=Any)

Handler: TypeAlias = Callable[[Delivery[T]], object]

# The feeders, the keepers and the threads that stop a consumer, of all consumers of this process.
_role_threads: "WeakSet[threading.Thread]" = WeakSet()


class Consumer(Generic[T]):
    """Fetches ahead, runs the handler on several threads, keeps leases alive, acks in batches.

    `Queue.consume` returns it. Stop it, or use it in a `with` block; `run` blocks until a signal.
    """

    def __init__(
        self,
        context: Context[T],
        perform: Callable[[Action], object],
        deliver: Callable[[Context[T], Claimed, T, int], Delivery[T]],
        lifetime: Lifetime,
        handler: Handler[T],
        *,
        register: Callable[["Consumer[T]"], None],
        concurrency: int,
        batch: int,
        rules: Rules,
        on_buried: OnBuried[T] | None,
    ) -> None:
        refuse_coroutine_function(handler, "handler")
        self._hook = None if on_buried is None else BurialHook(on_buried)
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
        timeout = rules.timeout
        late = None if timeout is None else LateHandlers(timeout.total_seconds(), concurrency)
        caution = Caution[Delivery[T]](rules.max_attempts, concurrency)
        self._handover: Handover[Delivery[T]] = Handover(batch, late, caution)
        feeder = Feeder(self._context, self._handover, partial(deliver, self._context))
        keeper = Keeper(self._context, self._handover, rules)
        self._stopping = Stopping(self._context, self._handover)
        self._feeder = self._thread("feeder", partial(self._drive, feeder.run()))
        self._keeper = self._thread("keeper", partial(self._drive, keeper.run()))
        self._worker_numbers = count()
        workers = [self._worker() for _ in range(concurrency)]
        started = [self._feeder, self._keeper, *workers]
        if self._hook is not None:
            self._hook_thread = self._thread("on-buried", self._hook.run)
            started.append(self._hook_thread)
        self._threads = WeakSet(started)
        _role_threads.update((self._feeder, self._keeper))
        with self._handover:  # until all have started, none of them runs, and nobody can stop them
            register(self)
            for thread in started:
                thread.start()

    @property
    def in_hand(self) -> int:
        """The number of messages that it leases: fetched, running, or not settled yet."""
        return self._handover.workload.in_hand

    @property
    def stopped(self) -> bool:
        """Whether it has stopped, and so handles no more messages."""
        return self._handover.workload.stopped

    def run(self, grace: timedelta = defaults.GRACE) -> None:
        """Block until stopped: SIGTERM and SIGINT stop in good order, a second one at once."""
        run(self, grace=grace)

    def stop(self, grace: timedelta = defaults.GRACE) -> None:
        """Let running handlers finish within the grace time, and give the rest back at once.

        A thread of the consumer cannot wait for its own end. So when a handler or a listener calls
        this there, it returns at once, and the stop goes on in the background.
        """
        check_grace(grace)
        if not self._lifetime.is_here:
            return  # a fork has none of its threads
        with self._handover as workload:
            first = workload.stop(hard=grace <= timedelta(0))
        wind_up = partial(self._wind_up, grace.total_seconds())
        if self._called_from_within:
            if first:
                threading.Thread(target=wind_up, name="duequeue-stop", daemon=False).start()
        elif first:
            wind_up()
        else:
            self._handover.await_stopped()

    @property
    def _called_from_within(self) -> bool:
        """Whether the caller runs on a thread that a stop has to wait for.

        The roles of other consumers count too, because two of them could wait for each other.
        """
        here = threading.current_thread()
        return here in self._threads or here in _role_threads

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.stop()

    # The workers.

    def _run_handlers(self) -> None:
        events = self._context.events
        delivery = self._handover.next()
        while delivery is not None:
            if self._context.keeps_history:
                delivery.handler_began = self._context.now()
            if events.listeners:
                with events.handling(delivery) as report:
                    verdict = self._handle(delivery, report)
            else:
                verdict = self._handle(delivery)
            delivery = self._handover.next(delivery, verdict)

    def _handle(self, delivery: Delivery[T], report: ReportOutcome | None = None) -> Verdict | None:
        outcome: object
        try:
            outcome = self._handler(delivery)
            if outcome is not None:
                outcome = as_raised(outcome)
            if self._rules.respond:
                outcome = settling.as_answer(self._context, delivery, outcome)
        except BaseException as error:  # noqa: BLE001 - the worker outlives even sys.exit
            outcome = error
        verdict = settling.verdict_on(self._context, delivery, outcome, self._rules)
        if report is not None and not self._handover.is_late(delivery):
            report(outcome, verdict)
        return verdict

    # How threads fill the roles.

    def _wind_up(self, grace_seconds: float) -> None:
        here = threading.current_thread()
        self._threads.add(here)  # a listener may call `stop` here too
        _role_threads.add(here)
        try:
            self._drive(self._stopping.run(grace_seconds))
        except BaseException:  # such as a second Ctrl-C
            with self._handover as workload:
                workload.stop(hard=True)
            self._drive(self._stopping.run(0))
            raise
        finally:
            self._threads.remove(here)
            _role_threads.discard(here)
            with self._handover as workload:
                workload.end()
            solitude.leave(self._handover)

    def _drive(self, role: RoleFlow[None]) -> None:
        drive(role, self._perform_for_role)

    def _perform_for_role(self, action: RoleAction) -> object:
        match action:
            case roles.AwaitRoom():
                return self._handover.await_room()
            case roles.AwaitUnsettled(seconds):
                return self._handover.await_unsettled(seconds)
            case roles.AwaitFeeder():
                self._feeder.join()
            case roles.AwaitKeeper():
                self._keeper.join()
            case roles.AwaitHandlers(seconds):
                self._handover.await_handlers(seconds)
            case roles.CancelHandlers():
                pass  # a thread cannot be cancelled
            case roles.StartHandlers(number):
                self._start_workers(number)
            case roles.EndHook(seconds):
                self._end_hook(seconds)
            case Pause(seconds):
                self._handover.rest(seconds)
            case _:
                return self._perform(action)
        return None

    def _start_workers(self, number: int) -> None:
        for worker in [self._worker() for _ in range(number)]:
            self._threads.add(worker)
            worker.start()

    def _end_hook(self, seconds: float) -> None:
        if self._hook is not None:
            self._hook.end()
            if threading.current_thread() is not self._hook_thread:
                self._hook_thread.join(max(0.0, seconds))

    def _worker(self) -> threading.Thread:
        return self._thread(f"handler-{next(self._worker_numbers)}", self._run_handlers)

    def _thread(self, name: str, target: Callable[[], None]) -> threading.Thread:
        full_name = f"duequeue-{self._context.name}-{name}"
        return threading.Thread(target=target, name=full_name, daemon=True)

    def _stop_on_signal(self, grace: timedelta) -> None:
        # On another thread, because the signal may have interrupted one that holds our lock.
        stop = partial(self.stop, timedelta(0) if self._handover.workload.stopping else grace)
        threading.Thread(target=stop, name="duequeue-stop").start()


def run(*consumers: Consumer[Any], grace: timedelta = defaults.GRACE) -> None:
    """Block until all of them have stopped: SIGTERM and SIGINT stop them together, in good order.

    A second signal stops them at once. Call it on the main thread.
    """
    check_grace(grace)
    _check_consumers(consumers)

    def on_signal() -> None:
        for consumer in consumers:
            consumer._stop_on_signal(grace)  # noqa: SLF001 - users need not know it

    with answered_by(on_signal):
        for consumer in consumers:
            consumer._handover.await_stopped()  # noqa: SLF001 - likewise


def _check_consumers(consumers: tuple[Consumer[Any], ...]) -> None:
    if not consumers:
        raise InvalidArgument(
            "consumers", text="run needs at least one consumer, such as queue.consume(handler)"
        )
    for consumer in consumers:
        if not isinstance(consumer, Consumer):
            raise InvalidType(
                "consumers",
                text=f"run takes consumers of Queue.consume, not {type(consumer).__name__}; for "
                "AsyncConsumers, use `await asyncio.gather(one.run(), another.run())`",
            )
        consumer._lifetime.check_process()  # noqa: SLF001 - users need not know it
