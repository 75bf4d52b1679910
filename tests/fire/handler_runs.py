"""The handlers of consumers, whose every run is in the log."""

import contextlib
from collections.abc import Iterator
from datetime import timedelta
from itertools import count
from random import Random
from typing import Any

from duequeue import Bury, Retry
from tests.fire.calling import Caller, described
from tests.fire.entries import Call

VERDICTS = {"ack": 80, "release": 12, "bury": 8}


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
