"""A process that a tour leads step by step, on a clock that stands still between the steps."""

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from duequeue import CronHandle, ManualClock, Queue
from duequeue.consumer.consumer import Consumer
from duequeue.instants import from_millis, to_millis
from tests.fire.actors import RETRIES, Settings
from tests.fire.calling import Caller
from tests.fire.clocks import reader_of
from tests.fire.crons import install_cron
from tests.fire.draining import finish
from tests.fire.entries import Call
from tests.fire.handler_runs import Runs
from tests.fire.recorder import Recorder
from tests.fire.walking import walk_alone
from tests.fixtures.failing import interruption
from tests.fixtures.injecting import allow_injections, injected

PAUSE = 0.01
GRACE = timedelta(seconds=30)


class Scripted:
    """The queues and consumers that the tour has this process open."""

    def __init__(
        self,
        process: str,
        settings: Settings,
        recorder: Recorder,
        recorded_keys: Callable[[], set[str]],
    ) -> None:
        self._process = process
        self._settings = settings
        self._recorder = recorder
        self._recorded_keys = recorded_keys
        self._clock = ManualClock(from_millis(settings.epoch))
        self._callers: dict[str, Caller] = {}
        self._consumers: dict[str, Consuming] = {}
        self._crons: dict[str, CronHandle] = {}
        self._fails_at = -1

    def obey(self, order: str) -> Callable[..., Any]:
        """Return the method for an order."""
        method: Callable[..., Any] = getattr(self, order, self._unknown)
        return method

    def _unknown(self, **facts: Any) -> None:
        raise LookupError(f"no such order: {facts}")

    def open(self, actor: str, queue: str, poll_interval: int) -> None:
        """Open a queue for an actor."""
        opened: Queue[Any] = Queue.open(
            self._settings.url,
            queue,
            lease=timedelta(milliseconds=self._settings.lease),
            poll_interval=timedelta(milliseconds=poll_interval),
            clock=self._clock,
            retry=RETRIES,
            history=self._settings.history,
        )
        self._callers[actor] = Caller(
            self._recorder, self._process, actor, queue, opened, reader_of(self._clock)
        )

    def shut(self, actor: str) -> None:
        """Close the queue of an actor."""
        self._callers.pop(actor).queue.close()

    def move(self, to: int) -> None:
        """Set the clock."""
        self._clock.set(from_millis(to))

    def call(self, actor: str, call: dict[str, Any]) -> Any:
        """Make a call, unless it is about a delivery that never came."""
        made = msgspec.convert(call, Call)
        caller = self._callers[actor]
        if made.do in {"ack", "extend", "release", "bury"} and made.delivery not in caller.held:
            return None
        fails_at, self._fails_at = self._fails_at, -1
        with injected(interruption(self._settings.url), fails_at):
            return caller.call(made)

    def allow_failures(self) -> None:
        """Let statements fail on the connections that are opened from now on."""
        allow_injections(pytest.MonkeyPatch())

    def fail(self, actor: str, number: int) -> None:  # noqa: ARG002 - each order names its actor
        """Let a statement fail before that one of the next call, if the store has statements."""
        self._fails_at = number

    def walk(self, actor: str, calls: int, seed: int) -> None:
        """Make random calls, alone on the queue."""
        left = iter(range(calls))
        walk_alone(
            self._callers[actor],
            self._clock,
            self._settings.lease,
            seed,
            lambda: next(left, None) is None,
            rest=1e-6,
        )

    def finish(self, actor: str) -> None:
        """Receive whatever is left, and look at what does not come."""
        finish(self._callers[actor], self._settings, self._recorded_keys, patience=0.5)

    def accept(self, actor: str) -> None:
        """Receive and ack whatever is due."""
        caller = self._callers[actor]
        while found := caller.call(Call("poll", limit=100)):
            caller.call(Call("ack_many", deliveries=[each.id for each in found]))

    def install(self, actor: str, *, last: bool) -> None:
        """Install the cron."""
        caller = self._callers[actor]
        self._crons[actor] = install_cron(caller, self._settings.period, last=last)

    def refresh(self, actor: str) -> None:
        """Have the cron create what is missing."""
        self._crons[actor].refresh()

    def close(self, actor: str) -> None:
        """Close the cron of this node."""
        self._crons[actor].close()

    def consume(self, actor: str, concurrency: int, batch: int) -> None:
        """Start a consumer whose handlers wait until they are let go."""
        caller = self._callers[actor]
        self._consumers[actor] = Consuming(caller, self._settings.lease, concurrency, batch)

    def await_runs(self, actor: str, number: int, patience: float) -> bool:
        """Wait until this many handlers run."""
        running = self._consumers[actor].running
        return _until(lambda: len(running) >= number, patience)

    def await_in_hand(self, actor: str, number: int, patience: float) -> bool:
        """Wait until the consumer has fetched this many messages."""
        consumer = self._consumers[actor].consumer
        return _until(lambda: consumer.in_hand >= number, patience)

    def await_extended(self, actor: str, after: int, patience: float) -> bool:
        """Wait until every lease of a running handler ends after an instant."""
        running = self._consumers[actor].running
        return _until(
            lambda: all(to_millis(each.lease_until) > after for each in list(running)), patience
        )

    def let_go(self, actor: str) -> None:
        """Let the handlers end, now and from now on."""
        self._consumers[actor].gate.set()

    def stop_consumer(self, actor: str) -> None:
        """Stop a consumer, and let its handlers end once it has given back the other messages."""
        self._consumers[actor].stop()


class Consuming:
    """A consumer whose handlers wait at a gate."""

    def __init__(self, caller: Caller, lease: int, concurrency: int, batch: int) -> None:
        self.gate = threading.Event()
        self.running: list[Any] = []
        self._runs = Runs(caller, lease, 0, verdicts={"ack": 1}, longest=0.0, clock_runs=False)
        self._number = self._runs.begin()
        self.consumer: Consumer[Any] = caller.queue.consume(
            self._handle, concurrency=concurrency, batch=batch
        )

    def stop(self) -> None:
        stopping = threading.Thread(target=self.consumer.stop, args=(GRACE,))
        stopping.start()
        _until(lambda: self.consumer.in_hand <= len(self.running), GRACE.total_seconds())
        self.gate.set()
        stopping.join()
        self._runs.end(self._number)

    def _handle(self, delivery: Any) -> None:
        with self._runs.one(delivery):
            self.running.append(delivery)
            self.gate.wait()


def _until(condition: Callable[[], bool], patience: float) -> bool:
    gives_up_at = time.monotonic() + patience
    while not condition():
        if time.monotonic() > gives_up_at:
            return False
        time.sleep(PAUSE)
    return True
