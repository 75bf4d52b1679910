"""A round of callbacks: push processes and the endpoint are killed and stopped under load."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from duequeue import Queue
from tests.callbacks.pushed import SECRET, pushing
from tests.fire.calling import Caller
from tests.fire.check_posts import check_posts
from tests.fire.endpoint import QUEUE
from tests.fire.entries import Call
from tests.fire.ground import Ground
from tests.fire.programs import Program
from tests.fire.recorder import Recorder
from tests.fire.rounds import Outcome, Round
from tests.fixtures.servers import free_port

PUSH_PROCESSES = 2
REST = 0.02
PATIENCE = 60.0
ENDPOINT: dict[str, Any] = {
    "queue": QUEUE,
    "timeout": 1000,
    "attempts": 1000,
    "concurrency": 20,
    "first_delay": 50,
    "longest_delay": 300,
    "delay_factor": 2.0,
}


def run_callback_round(ground: Ground, plan: Round, folder: Path) -> Outcome:
    """Run a round, and judge its logs, which stay in the folder."""
    random, url, port = Random(plan.seed), ground.fresh_url(), free_port()
    logs = (folder / f"endpoint-{number}.jsonl" for number in count(1))

    def endpoint() -> list[str]:
        facts = (port, next(logs), random.randrange(2**32), SECRET)
        return ["tests.fire.endpoint", *map(str, facts)]

    def push() -> list[str]:
        return ["tests.fire.push_worker", url, plan.mutant]

    with pushing(url) as defining:
        defining.define(f"http://127.0.0.1:{port}/", **ENDPOINT)
    with (
        closing(Recorder(folder / "round.jsonl")) as recorder,
        Queue.open(url, QUEUE) as queue,
        ExitStack() as running,
    ):
        caller = Caller(recorder, "round", "producer", QUEUE, queue, _milliseconds)
        receiver = running.enter_context(closing(Program(endpoint, folder / "endpoint.err")))
        pushes = [
            running.enter_context(closing(Program(push, folder / f"push-{number}.err")))
            for number in range(PUSH_PROCESSES)
        ]
        nemesis = CallbackNemesis(receiver, pushes, random, recorder)
        stopping = threading.Event()
        producing = threading.Thread(target=_produce, args=(caller, random.random(), stopping))
        producing.start()
        try:
            nemesis.go_on(plan)
        finally:
            stopping.set()
            producing.join()
        _finish(caller)
    return Outcome(check_posts(folder), nemesis.counts)


class CallbackNemesis:
    """One fault after the other, with pauses in which the processes recover."""

    def __init__(
        self, endpoint: Program, pushes: list[Program], random: Random, recorder: Recorder
    ) -> None:
        self._random = random
        self._recorder = recorder
        self._faults: dict[str, Callable[[], object]] = {
            "kill push": lambda: random.choice(pushes).kill(),
            "pause push": lambda: random.choice(pushes).pause(random),
            "kill endpoint": endpoint.kill,
            "pause endpoint": lambda: endpoint.pause(random),
        }
        self.counts: Counter[str] = Counter()

    def go_on(self, plan: Round) -> None:
        """Let each fault happen once, or faults at random for some seconds."""
        ends_at = time.monotonic() + (plan.seconds or 0)
        for name in plan.faults:
            self._strike(name)
        while time.monotonic() < ends_at:
            self._strike(self._random.choice(plan.faults))

    def _strike(self, name: str) -> None:
        time.sleep(self._random.uniform(0.2, 1.0))
        number = self.counts.total()
        self._recorder.noted("fault begins", fault_number=number, fault=name)
        self._faults[name]()
        self._recorder.noted("fault ends", fault_number=number)
        self.counts[name] += 1


def _produce(caller: Caller, seed: float, stopping: threading.Event) -> None:
    """Offer messages for soon; some are offered again with another content before that."""
    random = Random(seed)
    for number in count():
        if stopping.wait(REST):
            return
        key, due = f"call-{number}", _milliseconds() + random.choice([0, 0, 50, 300])
        caller.call(Call("offer", key, "first", due))
        if random.random() < 0.2:
            caller.call(Call("offer", key, "second", due))


def _finish(caller: Caller) -> None:
    """Wait until everything is settled, and write down what is not."""
    gives_up_at = time.monotonic() + PATIENCE
    while caller.queue.stats().total and time.monotonic() < gives_up_at:
        time.sleep(0.1)
    number = caller.recorder.invoked(caller.actor, QUEUE, _milliseconds(), Call("leftover"))
    left = [message.key for message in caller.queue.list().messages]
    caller.recorder.answered(number, _milliseconds(), left)


def _milliseconds() -> int:
    return round(time.time() * 1000)
