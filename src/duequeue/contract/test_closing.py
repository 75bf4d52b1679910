"""Opening and closing: what ends with a queue, and what outlives it."""

from collections.abc import Callable
from functools import partial

import pytest

from duequeue import Message, QueueClosed
from duequeue.contract.faces import DeliveryFace, QueueFace
from duequeue.contract.fixtures import START, OpenQueue
from duequeue.contract.phrases import DAY, PATIENCE, claim, in_background

QUEUE_CALLS: dict[str, Callable[[QueueFace], object]] = {
    "offer": lambda queue: queue.offer("b", 1),
    "offer_batch": lambda queue: queue.offer_batch([Message("b", 1)]),
    "try_poll": lambda queue: queue.try_poll(),
    "try_poll_many": lambda queue: queue.try_poll_many(5),
    "poll": lambda queue: queue.poll(),
    "poll_many": lambda queue: queue.poll_many(5),
    "read": lambda queue: queue.read("a"),
    "contains": lambda queue: queue.contains("a"),
    "list": lambda queue: queue.list(),
    "reschedule": lambda queue: queue.reschedule("a", DAY),
    "run_now": lambda queue: queue.run_now("a"),
    "drop": lambda queue: queue.drop("a"),
    "drop_all": lambda queue: queue.drop_all("orders"),
    "stats": lambda queue: queue.stats(),
    "buried": lambda queue: queue.buried(5),
    "revive": lambda queue: queue.revive("a"),
    "revive_all": lambda queue: queue.revive_all(),
    "delete_buried": lambda queue: queue.delete_buried("1.1"),
    "purge_buried": lambda queue: queue.purge_buried(START),
    "within": lambda queue: queue.within(object()),
}

SETTLEMENTS: dict[str, Callable[[DeliveryFace], bool]] = {
    "ack": lambda delivery: delivery.ack(),
    "extend": lambda delivery: delivery.extend(),
    "release": lambda delivery: delivery.release(),
    "bury": lambda delivery: delivery.bury("enough"),
}


def test_closing_twice_is_closing_once(queue: QueueFace) -> None:
    queue.close()
    queue.close()


def test_a_closed_queue_refuses_every_call(queue: QueueFace) -> None:
    queue.offer("a", 1)
    delivery = claim(queue)
    queue.close()
    for call in QUEUE_CALLS.values():
        with pytest.raises(QueueClosed):
            call(queue)
    for settle in SETTLEMENTS.values():
        with pytest.raises(QueueClosed):
            settle(delivery)
    with pytest.raises(QueueClosed):
        queue.ack_many([delivery])


def test_a_closed_queue_still_knows_its_name(queue: QueueFace) -> None:
    queue.close()
    assert queue.name == "orders"


def test_leaving_the_block_closes(open_queue: OpenQueue) -> None:
    with open_queue() as queue:
        queue.offer("a", 1)
    with pytest.raises(QueueClosed):
        queue.stats()


def test_leaving_the_block_by_an_exception_closes_and_passes(open_queue: OpenQueue) -> None:
    queue = open_queue()
    with pytest.raises(LookupError, match="mine"), queue:
        raise LookupError("mine")
    with pytest.raises(QueueClosed):
        queue.stats()


def test_one_queue_closes_alone(open_queue: OpenQueue) -> None:
    first, second = open_queue(), open_queue()
    first.offer("a", 1)
    first.close()
    delivery = claim(second)
    assert delivery.ack()


def test_messages_outlive_the_queue_that_offered_them(open_queue: OpenQueue) -> None:
    keeper = open_queue("another")
    with open_queue() as producer:
        producer.offer("a", 1)
    with open_queue() as consumer:
        assert claim(consumer).ack()
    assert keeper.stats().total == 0


def test_messages_outlive_every_queue(open_queue: OpenQueue, shared_url: str) -> None:
    with open_queue() as producer:
        producer.offer("a", 1)
        claim(producer)
        producer.offer("b", 1)
    with open_queue() as consumer:
        assert consumer.stats().leased == 1
        assert claim(consumer).key == "b"


def test_closing_ends_a_waiting_poll(open_queue: OpenQueue) -> None:
    for _ in range(5):
        queue = open_queue(poll_interval=DAY)
        calls: list[Callable[[], object]] = [queue.poll, partial(queue.poll_many, 5)]
        waiting = [in_background(call) for call in calls]
        queue.stats()
        queue.stats()
        queue.close()
        for future in waiting:
            with pytest.raises(QueueClosed):
                future.result(PATIENCE)
