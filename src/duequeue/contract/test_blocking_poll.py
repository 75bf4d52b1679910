"""Blocking polls: what wakes them, what does not, and that they sleep in between.

No test can see a poll fall asleep, so each gives it the time of a few round trips, and most repeat
themselves: a wake-up that is lost only sometimes shows as a poll that never ends.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from duequeue import ManualClock, Message
from duequeue.contract.faces import DeliveryFace, QueueFace
from duequeue.contract.fixtures import START, OpenQueue
from duequeue.contract.phrases import (
    DAY,
    DEFAULT_LEASE,
    DEFAULT_POLL_INTERVAL,
    HOUR,
    MINUTE,
    PATIENCE,
    SECOND,
    PickyCodec,
    claim,
    in_background,
    keys_of,
    offer_from_another_process,
)

ROUNDS = 10


def let_it_fall_asleep(queue: QueueFace) -> None:
    for _ in range(5):
        queue.stats()


def test_what_is_due_is_returned_at_once(queue: QueueFace) -> None:
    queue.offer_batch([Message(key, 1) for key in "abc"])
    first = queue.poll()
    assert first is not None
    assert first.key == "a"
    assert keys_of(queue.poll_many(10)) == ["b", "c"]


def test_no_time_means_no_waiting(queue: QueueFace) -> None:
    queue.offer("later", 1, SECOND)
    assert queue.poll(timedelta(0)) is None
    assert queue.poll_many(5, timedelta(0)) == []
    queue.offer("a", 1)
    assert keys_of(queue.poll_many(5, timedelta(0))) == ["a"]


def test_the_timeout_passes_in_real_time(queue: QueueFace) -> None:
    assert queue.poll(timedelta(milliseconds=5)) is None
    assert queue.poll_many(5, timedelta(milliseconds=5)) == []


def test_the_timeout_passes_on_the_injected_clock(queue: QueueFace, clock: ManualClock) -> None:
    for _ in range(ROUNDS):
        waiting = in_background(lambda: queue.poll(HOUR))
        let_it_fall_asleep(queue)
        # The poll may be so slow to start that its hour begins after the first move.
        while not waiting.done():
            clock.advance(HOUR)
            let_it_fall_asleep(queue)
        assert waiting.result() is None


def test_who_asks_for_nothing_does_not_wait(queue: QueueFace) -> None:
    assert in_background(lambda: queue.poll_many(0)).result(PATIENCE) == []
    assert in_background(lambda: queue.poll_many(-1)).result(PATIENCE) == []


WAKERS: dict[str, Callable[[QueueFace], object]] = {
    "offer": lambda queue: queue.offer("a", 1),
    "offer for the past": lambda queue: queue.offer("a", 1, -DAY),
    "offer_batch": lambda queue: queue.offer_batch([Message("a", 1), Message("b", 1, HOUR)]),
    "update": lambda queue: queue.offer("future", 1),
    "update in a batch": lambda queue: queue.offer_batch([Message("future", 1, START)]),
    "reschedule": lambda queue: queue.reschedule("future", START - HOUR),
    "run_now": lambda queue: queue.run_now("future"),
    "revive": lambda queue: queue.revive("buried"),
    "revive_all": lambda queue: queue.revive_all(),
}


@pytest.mark.parametrize("wake", WAKERS.values(), ids=WAKERS)
@pytest.mark.parametrize("same", [True, False], ids=["same queue", "another queue"])
def test_a_producer_wakes_a_waiting_poll(
    open_queue: OpenQueue, same: bool, wake: Callable[[QueueFace], object]
) -> None:
    consumer = open_queue(poll_interval=DAY)
    producer = consumer if same else open_queue()
    for _ in range(ROUNDS):
        producer.offer("buried", 1, -DAY)
        claim(producer).bury("enough")
        producer.offer("future", 1, DAY)
        waiting = in_background(consumer.poll)
        let_it_fall_asleep(producer)
        wake(producer)
        delivery = waiting.result(PATIENCE)
        assert delivery is not None
        assert delivery.ack()
        producer.drop_all(producer.name)


def test_a_producer_in_another_process_wakes_a_waiting_poll(
    open_queue: OpenQueue, shared_url: str
) -> None:
    queue = open_queue(poll_interval=DAY)
    waiting = in_background(queue.poll)
    let_it_fall_asleep(queue)
    offer_from_another_process(shared_url, "a")
    delivery = waiting.result(PATIENCE)
    assert delivery is not None
    assert delivery.ack()


def test_a_release_wakes_a_waiting_poll(open_queue: OpenQueue) -> None:
    holder, waiter = open_queue(), open_queue(poll_interval=DAY)
    for _ in range(ROUNDS):
        holder.offer("a", 1)
        delivery = claim(holder)
        waiting = in_background(waiter.poll)
        let_it_fall_asleep(holder)
        assert delivery.release()
        again = waiting.result(PATIENCE)
        assert again is not None
        assert again.attempt == 2
        assert again.ack()


def test_the_next_due_time_wakes_a_waiting_poll(open_queue: OpenQueue, clock: ManualClock) -> None:
    queue = open_queue(poll_interval=400 * DAY)
    for _ in range(ROUNDS):
        queue.offer("a", 1, HOUR)
        waiting = in_background(queue.poll)
        let_it_fall_asleep(queue)
        clock.advance(HOUR)
        delivery = waiting.result(PATIENCE)
        assert delivery is not None
        assert delivery.due_at == clock.now()
        assert delivery.ack()


def test_a_message_for_later_offered_to_a_waiting_poll_comes_when_due(
    queue: QueueFace, clock: ManualClock
) -> None:
    for _ in range(ROUNDS):
        waiting = in_background(queue.poll)
        let_it_fall_asleep(queue)
        queue.offer("a", 1, MINUTE)
        let_it_fall_asleep(queue)
        assert not waiting.done()
        clock.advance(MINUTE)
        delivery = waiting.result(PATIENCE)
        assert delivery is not None
        assert delivery.ack()


def test_an_expired_lease_wakes_a_waiting_poll(open_queue: OpenQueue, clock: ManualClock) -> None:
    dead, waiter = open_queue(), open_queue()
    dead.offer("a", 1)
    claim(dead)
    waiting = in_background(waiter.poll)
    let_it_fall_asleep(waiter)
    clock.advance(DEFAULT_LEASE - SECOND)
    let_it_fall_asleep(waiter)
    assert not waiting.done()
    clock.advance(SECOND + DEFAULT_POLL_INTERVAL)
    delivery = waiting.result(PATIENCE)
    assert delivery is not None
    assert (delivery.key, delivery.attempt, delivery.redelivered) == ("a", 2, True)


def test_a_waiting_poll_of_many_returns_with_what_there_is(
    queue: QueueFace, clock: ManualClock
) -> None:
    queue.offer_batch([Message(str(n), n, HOUR + n * SECOND) for n in range(5)])
    waiting = in_background(lambda: queue.poll_many(3))
    let_it_fall_asleep(queue)
    assert not waiting.done()
    clock.advance(HOUR + SECOND)
    first_two = waiting.result(PATIENCE)
    assert keys_of(first_two) == ["0", "1"]
    assert queue.ack_many(first_two) == 2
    waiting = in_background(lambda: queue.poll_many(2, DAY))
    clock.advance(HOUR)
    assert keys_of(waiting.result(PATIENCE)) == ["2", "3"]


def test_one_message_goes_to_one_of_many_waiting(open_queue: OpenQueue, clock: ManualClock) -> None:
    consumers = [open_queue(), open_queue(), open_queue()]
    waiting = [in_background(consumer.poll) for consumer in consumers for _ in range(2)]
    let_it_fall_asleep(consumers[0])
    delivered: list[DeliveryFace] = []
    for n in range(len(waiting)):
        consumers[0].offer(str(n), n)
    for future in waiting:
        delivery = future.result(PATIENCE)
        assert delivery is not None
        delivered.append(delivery)
    assert sorted(keys_of(delivered)) == [str(n) for n in range(len(waiting))]


def test_an_undecodable_payload_does_not_end_a_waiting_poll(open_queue: OpenQueue) -> None:
    queue = open_queue(codec=PickyCodec())
    waiting = in_background(queue.poll)
    let_it_fall_asleep(queue)
    queue.offer("bad", "rotten")
    let_it_fall_asleep(queue)
    assert not waiting.done()
    queue.offer("good", "sound")
    delivery = waiting.result(PATIENCE)
    assert delivery is not None
    assert delivery.key == "good"


class CountingClock(ManualClock):
    """Counts how often it is looked at."""

    looks = 0

    def now(self) -> datetime:
        self.looks += 1
        return super().now()


@pytest.mark.parametrize("due", [None, HOUR], ids=["empty", "something later"])
def test_a_waiting_poll_sleeps(open_queue: OpenQueue, due: timedelta | None) -> None:
    clock = CountingClock(START)
    queue = open_queue(clock=clock)
    if due is not None:
        queue.offer("a", 1, due)
    clock.looks = 0
    assert queue.poll(timedelta(milliseconds=100)) is None
    assert clock.looks <= 10


def test_a_lease_held_by_another_does_not_keep_a_poll_awake(open_queue: OpenQueue) -> None:
    clock = CountingClock(START)
    queue = open_queue(clock=clock)
    queue.offer("a", 1)
    claim(queue)
    clock.looks = 0
    assert queue.poll(timedelta(milliseconds=100)) is None
    assert clock.looks <= 10
