"""An interrupt in the middle of a call on the memory store makes no message unreachable."""

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from duequeue import Delivery, ManualClock, Message, Queue, timers
from duequeue.contract.fixtures import START
from duequeue.contract.phrases import DAY, SECOND
from duequeue.stores import memory
from duequeue.stores.memory.table import TIMERS
from tests.race.interrupting import Interrupter, TimeIsUp

PACKAGES = tuple(str(Path(str(package.__file__)).parent) for package in (memory, timers))
Call = Callable[[Queue[int], Delivery[int]], object]

# The delivery is of "leased"; "due" and "later" are in the queue, and "buried" is not.
CALLS: dict[str, Call] = {
    "offer": lambda queue, _: queue.offer("new", 1),
    "update": lambda queue, _: queue.offer("due", 2, DAY),
    "update a leased message": lambda queue, _: queue.offer("leased", 2),
    "offer_batch": lambda queue, _: queue.offer_batch([Message("new", 1), Message("due", 2)]),
    "try_poll_many": lambda queue, _: queue.try_poll_many(9),
    "poll": lambda queue, _: (queue.try_poll_many(9), queue.poll(timeout=0)),
    "extend": lambda _, delivery: delivery.extend(),
    "release": lambda _, delivery: delivery.release(SECOND),
    "ack": lambda _, delivery: delivery.ack(),
    "bury": lambda _, delivery: delivery.bury("unwanted"),
    "reschedule": lambda queue, _: queue.reschedule("due", SECOND),
    "drop": lambda queue, _: queue.drop("due"),
    "revive": lambda queue, _: queue.revive("buried"),
}


@pytest.mark.parametrize("timer", TIMERS)
@pytest.mark.parametrize("call", CALLS)
def test_every_message_is_still_delivered_once(call: str, timer: str) -> None:
    for number in range(10_000):
        if not interrupted_at(number, CALLS[call], f"memory:interrupted?timer={timer}"):
            break
    assert number > 1


def interrupted_at(number: int, call: Call, url: str) -> bool:
    """Interrupt a call at its moment of that number, unless it ends before; check what is left."""
    clock = ManualClock(START)
    with Queue[Any].open(url, "orders", clock=clock) as queue:
        queue.offer("buried", 1)
        queue.poll().bury("unwanted")
        for key, delay in [("leased", -2), ("due", -1), ("later", 5)]:
            queue.offer(key, 1, timedelta(seconds=delay))
        delivery = queue.poll()
        clock.advance(SECOND)
        with Interrupter(number, PACKAGES) as interrupter, suppress(TimeIsUp):
            call(queue, delivery)
        left = sorted(message.key for message in queue.list().messages)
        clock.advance(2 * DAY)
        assert sorted(found.key for found in queue.try_poll_many(9)) == left
        reachable = {*left, *(buried.key for buried in queue.buried(9))}
        assert {"later", "buried"} <= reachable
        return interrupter.struck
