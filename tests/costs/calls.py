"""The calls whose costs are counted, several of each kind."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from duequeue import ManualClock, Message, Queue
from duequeue.contract.phrases import DAY

LAPS = 8
CHUNK = 100
PAYLOAD = "x" * 98  # a hundred bytes as JSON

Call: TypeAlias = Callable[[], object]
Calls: TypeAlias = Callable[[Queue[Any]], list[Call]]


def fill(queue: Queue[Any], clock: ManualClock) -> None:
    """Have enough messages due for every kind of call."""
    for lap in range(LAPS):
        queue.offer_batch(chunk(-lap))
    clock.advance(DAY)


def chunk(lap: int) -> list[Message[Any]]:
    """Messages for later, of which nobody needs to be told now."""
    return [Message(f"order-{lap}-{number:02}", PAYLOAD, DAY) for number in range(CHUNK)]


def offers(queue: Queue[Any]) -> list[Call]:
    return [partial(queue.offer, f"order-{lap}", PAYLOAD, DAY) for lap in range(LAPS)]


def repeated_offers(queue: Queue[Any]) -> list[Call]:
    queue.offer("order-1", PAYLOAD, DAY)
    return [partial(queue.offer, "order-1", PAYLOAD, DAY)] * LAPS


def batches(queue: Queue[Any]) -> list[Call]:
    return [partial(queue.offer_batch, chunk(lap)) for lap in range(LAPS)]


def large_batches(queue: Queue[Any]) -> list[Call]:
    return _batches_of(1000, queue)


def batches_of_501(queue: Queue[Any]) -> list[Call]:
    """Where a statement takes 500 messages, the last one gets a statement of its own."""
    return _batches_of(501, queue)


def _batches_of(many: int, queue: Queue[Any]) -> list[Call]:
    laps = [[Message(f"{lap}-{n}", PAYLOAD, DAY) for n in range(many)] for lap in range(LAPS)]
    return [partial(queue.offer_batch, lap) for lap in laps]


def polls(queue: Queue[Any]) -> list[Call]:
    return [queue.try_poll] * LAPS


def polls_of_many(queue: Queue[Any]) -> list[Call]:
    return [partial(queue.try_poll_many, CHUNK)] * LAPS


def polls_in_vain(queue: Queue[Any]) -> list[Call]:
    queue.drop_all("orders")
    return [partial(queue.try_poll_many, CHUNK)] * LAPS


def acks(queue: Queue[Any]) -> list[Call]:
    return [delivery.ack for delivery in queue.try_poll_many(LAPS)]


def acks_of_many(queue: Queue[Any]) -> list[Call]:
    return [partial(queue.ack_many, queue.try_poll_many(CHUNK)) for _ in range(LAPS)]


def extensions(queue: Queue[Any]) -> list[Call]:
    return [partial(delivery.extend, DAY) for delivery in queue.try_poll_many(LAPS)]


def releases(queue: Queue[Any]) -> list[Call]:
    return [partial(delivery.release, DAY) for delivery in queue.try_poll_many(LAPS)]
