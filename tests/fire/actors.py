"""What the threads of a worker process do: call, consume, or keep a cron."""

import asyncio
import contextlib
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import count
from random import Random
from typing import Any

import msgspec

from duequeue import (
    AsyncQueue,
    Bury,
    CronHandle,
    DueQueueError,
    ManualClock,
    Misfire,
    Queue,
    Retry,
    RetryPolicy,
)
from duequeue.instants import from_millis, to_millis
from tests.fire.calling import Caller, described
from tests.fire.clocks import SkewedClock, reader_of
from tests.fire.entries import Call
from tests.fire.recorder import Recorder
from tests.fire.traffic import MIXED, POLLING, PRODUCING, Mixed, Traffic

CRON_PREFIX = "beat"
RETRIES = RetryPolicy(budget=timedelta(seconds=5))
GRACE = timedelta(seconds=20)
VERDICTS = {"ack": 80, "release": 12, "bury": 8}


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
        except BaseException:  # noqa: BLE001 - the log is to have whatever it is
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


def walk(caller: Caller, traffic: Traffic) -> None:
    """Make the calls of some traffic."""
    answer = None
    with contextlib.suppress(StopIteration):
        while True:
            step = traffic.send(answer)
            answer = None
            if isinstance(step, Call):
                answer = caller.call(step)
            else:
                time.sleep(step)


async def walk_async(caller: Caller, traffic: Traffic, random: Random) -> None:
    """Make the calls of some traffic, and give some of them up halfway."""
    answer = None
    with contextlib.suppress(StopIteration):
        while True:
            step = traffic.send(answer)
            answer = None
            if not isinstance(step, Call):
                await asyncio.sleep(step)
                continue
            if random.random() < 0.02:
                step = msgspec.structs.replace(step, facts={"give_up": random.uniform(0, 0.004)})
            answer = await caller.call_async(step)


def walk_alone(
    caller: Caller,
    clock: ManualClock,
    lease: int,
    seed: int,
    stopping: Callable[[], bool],
    rest: float,
) -> None:
    """Make calls on a clock that moves between them, by steps that often hit an end exactly.

    Now and then it is set back.
    """
    random = Random(seed)
    number = caller.recorder.invoked(
        caller.actor, caller.queue_name, caller.read_clock(), Call("alone", delay=lease)
    )
    caller.recorder.answered(number, caller.read_clock(), None)
    mixed = Mixed(f"{caller.process}.alone", seed, lease, caller.read_clock, MIXED)
    mixed.key = lambda: f"alone-{random.randrange(8)}"
    mixed.rest = rest
    mixed.longest_wait = 0.02
    traffic, answer = mixed.run(stopping), None
    with contextlib.suppress(StopIteration):
        while True:
            step = traffic.send(answer)
            answer = None
            if isinstance(step, Call):
                answer = caller.call(step)
                continue
            time.sleep(step)
            millis = random.choices([0, 1, 30, 150, lease, -200], [60, 10, 15, 10, 5, 3])[0]
            clock.advance(timedelta(milliseconds=millis))


class Runs:
    """Records the runs of one consumer's handler, and decides how each goes."""

    def __init__(
        self,
        caller: Caller,
        lease: int,
        seed: int,
        verdicts: dict[str, int] = VERDICTS,
        longest: float = 1.3,
        *,
        clock_runs: bool = True,
    ) -> None:
        self._caller = caller
        self._clock_runs = clock_runs
        self._recorder = caller.recorder
        self._verdicts = verdicts
        self._longest = lease * longest / 1000
        self._random = Random(seed)
        self._names = count(1)

    def begin(self) -> int:
        """Record that the consumer starts, and return the number of that call."""
        return self._invoked(Call("consume", facts={"clock_runs": self._clock_runs}))

    def end(self, number: int) -> None:
        """Record that the consumer has stopped."""
        self._recorder.answered(number, self._caller.read_clock(), None)

    @contextlib.contextmanager
    def one(self, delivery: Any) -> Iterator[float]:
        """Record a run, let it last some seconds, and end it with some verdict."""
        name = f"{self._caller.process}.{self._caller.actor}.{next(self._names)}"
        number = self._invoked(Call("run", received=described(name, delivery)))
        verdict, delay = self._verdict()
        try:
            yield self._duration()
        except BaseException as error:
            self._recorder.failed(number, self._caller.read_clock(), error)
            raise
        answer = {"verdict": verdict, "delay": delay}
        self._recorder.answered(number, self._caller.read_clock(), answer)
        if verdict == "release":
            raise Retry(timedelta(milliseconds=delay))
        if verdict == "bury":
            raise Bury("as it came")

    def _invoked(self, call: Call) -> int:
        caller = self._caller
        return self._recorder.invoked(caller.actor, caller.queue_name, caller.read_clock(), call)

    def _duration(self) -> float:
        if self._random.random() < 0.03:
            return self._longest  # longer than a lease, so that the consumer has to extend it
        return self._random.expovariate(1 / 0.01)

    def _verdict(self) -> tuple[str, int]:
        verdict = self._random.choices(list(self._verdicts), list(self._verdicts.values()))[0]
        return verdict, self._random.choice([0, 50, 200]) if verdict == "release" else 0


def install_cron(caller: Caller, period: int, *, last: bool) -> CronHandle:
    """Install the cron of the round, and record it as a call."""

    def payload(at: datetime) -> str:
        return str(to_millis(at))

    call = Call("install", delay=period, facts={"last": last})
    number = caller.recorder.invoked(caller.actor, caller.queue_name, caller.read_clock(), call)
    handle: CronHandle = caller.queue.cron.install_periodic_tick(
        CRON_PREFIX, timedelta(milliseconds=period), payload, misfire=Misfire.fire_all(10_000)
    )
    caller.recorder.answered(number, caller.read_clock(), None)
    return handle
