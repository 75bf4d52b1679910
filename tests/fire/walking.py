"""How an actor makes the calls of its traffic: blocking, awaited, or alone on its queue."""

import asyncio
import contextlib
import time
from collections.abc import Callable
from datetime import timedelta
from random import Random

import msgspec

from duequeue import ManualClock
from tests.fire.calling import Caller
from tests.fire.entries import Call
from tests.fire.traffic import ALONE, Mixed, Traffic


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
    mixed = Mixed(f"{caller.process}.alone", seed, lease, caller.read_clock, ALONE)
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
