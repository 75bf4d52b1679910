"""Consumers that are stopped while they start, and consumers that stop each other."""

import threading
from contextlib import suppress
from typing import Any

from duequeue import Consumer, Delivered, Event, Queue, QueueClosed

ROUNDS = 30
PATIENCE = 20.0


def ignore(delivery: object) -> None:
    """Handle a message."""


def ends(call: Any) -> bool:
    """Make a call on a thread of its own, and return whether it ends."""
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    return not thread.is_alive()


def test_a_queue_is_closed_while_a_consumer_starts() -> None:
    for _ in range(ROUNDS):
        queue = Queue[Any].open("memory:", "orders")
        closing = threading.Thread(target=queue.close)
        with suppress(QueueClosed):  # if it was closed first
            closing.start()
            queue.consume(ignore, concurrency=60)
        closing.join()
        assert ends(queue.close)


def test_a_listener_closes_the_queue_while_a_consumer_starts() -> None:
    for _ in range(ROUNDS):
        queue = Queue[Any].open("memory:", "orders")
        queue.offer("a", 1)
        queue.events.subscribe(lambda _, queue=queue: queue.close())  # type: ignore[misc]
        consumer = queue.consume(ignore, concurrency=60)
        assert ends(consumer.stop)
        assert ends(queue.close)  # if the stop came first, there was no event to close it


def test_two_consumers_that_stop_each_other_both_stop() -> None:
    consumers: list[Consumer[Any]] = []
    both = threading.Barrier(3)  # two feeders, and this test

    def stop_all(event: Event) -> None:
        if isinstance(event, Delivered):
            both.wait(PATIENCE)
            for consumer in consumers:
                consumer.stop()

    with (
        Queue[Any].open("memory:", "orders") as orders,
        Queue[Any].open("memory:", "bills") as bills,
    ):
        for queue in (orders, bills):
            queue.events.subscribe(stop_all)
            consumers.append(queue.consume(ignore))
        orders.offer("a", 1)
        bills.offer("a", 1)
        both.wait(PATIENCE)
        for consumer in consumers:
            assert ends(consumer.stop)
