"""What the threads of a worker process do: call, consume, or keep a cron."""

import asyncio
import contextlib
import threading
import time
import traceback
from collections.abc import Callable
from datetime import timedelta
from random import Random
from typing import Any

import msgspec

from duequeue import (
    AsyncQueue,
    DueQueueError,
    ManualClock,
    Queue,
    RetryPolicy,
)
from duequeue.instants import from_millis
from tests.fire.calling import Caller
from tests.fire.clocks import SkewedClock, reader_of
from tests.fire.crons import install_cron
from tests.fire.handler_runs import Runs
from tests.fire.recorder import Recorder
from tests.fire.traffic import CLASHING, MIXED, POLLING, PRODUCING, Mixed, Traffic
from tests.fire.walking import walk, walk_alone, walk_async

RETRIES = RetryPolicy(budget=timedelta(seconds=5))
GRACE = timedelta(seconds=20)


class ActorSpec(msgspec.Struct):
    """One thread of a worker: what it does, with which queue, and how wrong its clock is."""

    name: str
    role: str
    queue: str
    seed: int
    skew: int = 0


class Settings(msgspec.Struct):
    """What all actors of a round have in common; durations in milliseconds."""

    url: str
    epoch: int
    lease: int
    period: int
    history: bool = False


class Actor:
    """One thread, its clock and its queue."""

    def __init__(
        self, process: str, spec: ActorSpec, settings: Settings, recorder: Recorder
    ) -> None:
        self.process = process
        self.spec = spec
        self.settings = settings
        self.recorder = recorder
        self.clock = SkewedClock(settings.epoch, spec.skew)
        self.stopping = threading.Event()
        roles: dict[str, Callable[[], None]] = {
            "caller": lambda: self._blocking(MIXED),
            "producer": lambda: self._blocking(PRODUCING),
            "rival": lambda: self._blocking(CLASHING),
            "poller": lambda: self._blocking(POLLING),
            "async caller": lambda: asyncio.run(self._awaiting(MIXED)),
            "consumer": self._consume,
            "async consumer": lambda: asyncio.run(self._consume_async()),
            "cron": self._keep_cron,
            "alone": self._alone,
        }
        self._role = roles[spec.role]
        self.thread = threading.Thread(target=self._run, name=spec.name, daemon=True)

    def jump(self, by: int) -> None:
        """Move this actor's clock."""
        was = self.clock.read()
        self.recorder.noted("clock", self.spec.name, was=was, now=was + by)
        self.clock.jump(by)

    def _run(self) -> None:
        try:
            self._role()
        except BaseException:  # noqa: BLE001 - the log must have every error
            self.recorder.noted("raised", self.spec.name, traceback=traceback.format_exc())

    def options(self) -> dict[str, Any]:
        return {
            "lease": timedelta(milliseconds=self.settings.lease),
            "poll_interval": timedelta(milliseconds=300),
            "clock": self.clock,
            "retry": RETRIES,
            "history": self.settings.history,
        }

    def _caller(self, queue: Any) -> Caller:
        spec = self.spec
        return Caller(self.recorder, self.process, spec.name, spec.queue, queue, self.clock.read)

    def _traffic(self, name: str, seed: int, mix: dict[str, int]) -> Traffic:
        mixed = Mixed(f"{self.process}.{name}", seed, self.settings.lease, self.clock.read, mix)
        return mixed.run(self.stopping.is_set)

    def _open(self) -> Queue[Any] | None:
        """Open a blocking queue, trying again while its store cannot be reached."""
        while not self.stopping.is_set():
            with contextlib.suppress(DueQueueError):
                return Queue.open(self.settings.url, self.spec.queue, **self.options())
        return None

    def _blocking(self, mix: dict[str, int]) -> None:
        if (queue := self._open()) is not None:
            with queue:
                walk(self._caller(queue), self._traffic(self.spec.name, self.spec.seed, mix))

    async def _awaiting(self, mix: dict[str, int]) -> None:
        """Make calls from three tasks at once, and give some of them up halfway."""
        queue = await self._open_async()
        if queue is None:
            return
        async with queue, asyncio.TaskGroup() as tasks:
            for number in range(3):
                traffic = self._traffic(f"{self.spec.name}.{number}", self.spec.seed + number, mix)
                tasks.create_task(walk_async(self._caller(queue), traffic, Random(self.spec.seed)))

    async def _open_async(self) -> AsyncQueue[Any] | None:
        while not self.stopping.is_set():
            with contextlib.suppress(DueQueueError):
                return await AsyncQueue.open(self.settings.url, self.spec.queue, **self.options())
        return None

    def _consume(self) -> None:
        if (queue := self._open()) is None:
            return
        with queue:
            runs = Runs(self._caller(queue), self.settings.lease, self.spec.seed)

            def handle(delivery: Any) -> None:
                with runs.one(delivery) as seconds:
                    time.sleep(seconds)

            number = runs.begin()
            consumer = queue.consume(handle, concurrency=3, batch=6)
            self.stopping.wait()
            consumer.stop(GRACE)
            runs.end(number)

    async def _consume_async(self) -> None:
        queue = await self._open_async()
        if queue is None:
            return
        async with queue:
            runs = Runs(self._caller(queue), self.settings.lease, self.spec.seed)

            async def handle(delivery: Any) -> None:
                with runs.one(delivery) as seconds:
                    await asyncio.sleep(seconds)

            number = runs.begin()
            consumer = queue.consume(handle, concurrency=3, batch=6)
            while not self.stopping.is_set():  # noqa: ASYNC110 - it is set by another thread
                await asyncio.sleep(0.02)
            await consumer.stop(GRACE)
            runs.end(number)

    def _keep_cron(self) -> None:
        if (queue := self._open()) is not None:
            with queue:
                install_cron(self._caller(queue), self.settings.period, last=False)
                self.stopping.wait()

    def _alone(self) -> None:
        """Work alone on a queue, on a clock that only moves between two calls."""
        clock = ManualClock(from_millis(self.settings.epoch))
        options = {**self.options(), "clock": clock, "poll_interval": timedelta(hours=1)}
        name = f"{self.spec.queue} of {self.process}"
        try:
            queue: Queue[Any] = Queue.open(self.settings.url, name, **options)
        except DueQueueError:
            return
        with queue:
            walk_alone(
                Caller(self.recorder, self.process, self.spec.name, name, queue, reader_of(clock)),
                clock,
                self.settings.lease,
                self.spec.seed,
                self.stopping.is_set,
                rest=0.002,
            )
