"""Poll: only what is due, the earliest first, never more than asked for."""

from datetime import UTC, datetime, timedelta

import pytest

from duequeue import ManualClock, Message, Queue
from duequeue.contract.faces import QueueFace
from duequeue.contract.fixtures import START, OpenQueue
from duequeue.contract.phrases import (
    DAY,
    DEFAULT_LEASE,
    HOUR,
    MILLISECOND,
    MINUTE,
    SECOND,
    PickyCodec,
    claim,
    keys_of,
    offer_from_another_process,
)


def test_an_empty_queue_has_nothing_to_deliver(queue: QueueFace) -> None:
    assert queue.try_poll() is None
    assert queue.try_poll_many(10) == []


def test_a_message_is_due_from_its_very_millisecond_on(
    queue: QueueFace, clock: ManualClock
) -> None:
    queue.offer("a", 1, HOUR)
    clock.advance(HOUR - MILLISECOND)
    assert queue.try_poll() is None
    clock.advance(MILLISECOND)
    assert claim(queue).key == "a"


def test_due_is_judged_in_whole_milliseconds(queue: QueueFace) -> None:
    queue.offer("a", 1, START + timedelta(microseconds=999))
    delivery = claim(queue)
    assert delivery.due_at == START


def test_a_delivery_says_all_about_itself(open_queue: OpenQueue, clock: ManualClock) -> None:
    queue = open_queue("orders", lease=90 * SECOND)
    queue.offer("a", {"total": 12}, START - MINUTE)
    clock.advance(timedelta(microseconds=1234))
    delivery = claim(queue)
    assert (delivery.key, delivery.payload, delivery.queue_name) == ("a", {"total": 12}, "orders")
    assert (delivery.attempt, delivery.redelivered) == (1, False)
    assert delivery.due_at == START - MINUTE
    assert delivery.delivered_at == START + MILLISECOND
    assert delivery.lease_until == START + MILLISECOND + 90 * SECOND
    for instant in (delivery.due_at, delivery.delivered_at, delivery.lease_until):
        assert instant.utcoffset() == timedelta(0)


def test_a_poll_leases_for_five_minutes_unless_somebody_says_otherwise(
    open_queue: OpenQueue,
) -> None:
    for key, queue in (("a", open_queue()), ("b", open_queue(lease=None))):
        queue.offer(key, 1)
        assert claim(queue).lease_until == START + DEFAULT_LEASE


def test_the_earliest_due_comes_first(queue: QueueFace) -> None:
    for key, minutes_ago in (("b", 2), ("c", 1), ("a", 3)):
        queue.offer(key, 1, -minutes_ago * MINUTE)
    assert [claim(queue).key for _ in range(3)] == ["a", "b", "c"]


def test_ties_come_in_insertion_order(queue: QueueFace) -> None:
    for key in "bca":
        queue.offer(key, 1, START)
    assert [claim(queue).key for _ in range(3)] == ["b", "c", "a"]


def test_an_updated_message_keeps_its_place_among_ties(queue: QueueFace) -> None:
    for key in "bca":
        queue.offer(key, 1, START)
    queue.offer("b", 2, START)
    assert keys_of(queue.try_poll_many(3)) == ["b", "c", "a"]


def test_several_come_in_due_order(queue: QueueFace) -> None:
    for key, minutes_ago in (("b", 2), ("c", 1), ("a", 3), ("b2", 2)):
        queue.offer(key, 1, -minutes_ago * MINUTE)
    assert keys_of(queue.try_poll_many(10)) == ["a", "b", "b2", "c"]


def test_what_is_claimed_after_a_burial_takes_its_place_in_due_order(
    open_queue: OpenQueue, store_url: str
) -> None:
    class Interrupting(PickyCodec):
        """Something earlier is committed just before a payload turns out to be bad."""

        def decode(self, data: bytes, /) -> str:
            if data == b"rotten":
                other.offer("early", "sound", START - 3 * HOUR)
            return super().decode(data)

    queue = open_queue(codec=Interrupting())
    queue.offer("bad", "rotten", START - 2 * HOUR)
    for key in ("late", "tie"):
        queue.offer(key, "sound", START - HOUR)
    with Queue.open(store_url, "orders", codec=PickyCodec()) as other:
        assert keys_of(queue.try_poll_many(10)) == ["early", "late", "tie"]
    assert keys_of(queue.buried(10)) == ["bad"]


def test_a_poll_that_buries_something_leases_at_most_its_limit(open_queue: OpenQueue) -> None:
    queue = open_queue(codec=PickyCodec())
    queue.offer("bad", "rotten", START - HOUR)
    queue.offer_batch(
        [
            Message(key, "sound", START - late * MINUTE)
            for key, late in zip("abcde", range(5, 0, -1), strict=True)
        ]
    )
    assert keys_of(queue.try_poll_many(3)) == ["a", "b", "c"]
    assert queue.stats().due == 2


def test_a_released_message_is_ordered_by_its_new_due_time(
    open_queue: OpenQueue, clock: ManualClock
) -> None:
    queue = open_queue(codec=PickyCodec())
    queue.offer("first", "sound", START - 2 * HOUR)
    assert claim(queue).release(MINUTE)
    queue.offer("bad", "rotten", START - HOUR)
    queue.offer("second", "sound", START)
    clock.advance(MINUTE)
    assert keys_of(queue.try_poll_many(10)) == ["second", "first"]


def test_future_messages_stay_where_they_are(queue: QueueFace) -> None:
    queue.offer_batch([Message("now", 1), Message("later", 1, MILLISECOND)])
    assert keys_of(queue.try_poll_many(10)) == ["now"]
    assert queue.stats().future == 1


def test_a_leased_message_is_nobody_elses(open_queue: OpenQueue) -> None:
    first, second = open_queue(), open_queue()
    first.offer("a", 1)
    claim(first)
    assert first.try_poll() is None
    assert second.try_poll() is None
    assert second.try_poll_many(5) == []


def test_leased_messages_do_not_hide_the_others(queue: QueueFace) -> None:
    queue.offer_batch([Message(str(n), n, START - n * SECOND) for n in range(20)])
    seen = [claim(queue).key for _ in range(10)] + keys_of(queue.try_poll_many(10))
    assert seen == [str(n) for n in reversed(range(20))]


def test_a_poll_leases_at_most_its_limit(queue: QueueFace) -> None:
    for limit in (1, 3, 9, 10, 11, 5000):
        queue.offer_batch([Message(str(n), n) for n in range(10)])
        polled = queue.try_poll_many(limit)
        assert keys_of(polled) == [str(n) for n in range(min(limit, 10))]
        stats = queue.stats()
        assert (stats.leased, stats.due) == (len(polled), 10 - len(polled))
        queue.drop_all(queue.name)


def test_a_limit_of_nothing_leases_nothing(queue: QueueFace) -> None:
    queue.offer("a", 1)
    for limit in (0, -1, -(10**30)):
        assert queue.try_poll_many(limit) == []
    assert queue.stats().leased == 0


def test_an_enormous_limit_takes_all(queue: QueueFace) -> None:
    queue.offer_batch([Message(str(n), n) for n in range(3)])
    assert len(queue.try_poll_many(10**30)) == 3


def test_consumers_get_disjoint_messages(open_queue: OpenQueue) -> None:
    consumers = [open_queue(), open_queue(), open_queue()]
    consumers[0].offer_batch([Message(f"{n:02}", n) for n in range(30)])
    seen = [key for consumer in consumers for key in keys_of(consumer.try_poll_many(10))]
    assert seen == [f"{n:02}" for n in range(30)]


def test_a_backdated_message_comes_before_later_ones(queue: QueueFace) -> None:
    queue.offer_batch([Message("a", 1, START - MINUTE), Message("b", 1, START)])
    assert claim(queue).key == "a"
    queue.offer("early", 1, START - HOUR)
    assert keys_of(queue.try_poll_many(2)) == ["early", "b"]


def test_a_backdated_message_of_another_producer_comes_before_later_ones(
    open_queue: OpenQueue,
) -> None:
    consumer, producer = open_queue(), open_queue()
    consumer.offer_batch([Message("a", 1, START - MINUTE), Message("b", 1, START)])
    assert claim(consumer).key == "a"
    producer.offer_batch([Message("early", 1, START - HOUR), Message("future", 1, HOUR)])
    assert keys_of(consumer.try_poll_many(2)) == ["early", "b"]


def test_a_backdated_message_of_another_process_is_found(
    open_queue: OpenQueue, shared_url: str
) -> None:
    queue = open_queue(poll_interval=HOUR)
    queue.offer_batch([Message("a", 1), Message("b", 1)])
    assert queue.ack_many(queue.try_poll_many(2)) == 2
    offer_from_another_process(shared_url, "early")
    assert claim(queue).key == "early"


def test_a_queue_that_is_opened_overtakes_nothing(open_queue: OpenQueue, shared_url: str) -> None:
    earlier = open_queue(poll_interval=HOUR)
    earlier.offer("a", 1)
    assert claim(earlier).ack()
    offer_from_another_process(shared_url, "early")
    earlier.close()
    queue = open_queue(poll_interval=HOUR)
    queue.offer("late", 1)
    assert keys_of(queue.try_poll_many(2)) == ["early", "late"]


def test_a_message_moved_behind_what_was_delivered_is_found(queue: QueueFace) -> None:
    queue.offer_batch([Message("a", 1, START), Message("b", 1, HOUR)])
    assert claim(queue).ack()
    queue.offer("b", 1, START - DAY)
    assert claim(queue).key == "b"


def test_a_released_message_stands_behind_those_due_before_it(queue: QueueFace) -> None:
    queue.offer_batch([Message("a", 1, START - 2 * SECOND), Message("b", 1, START - SECOND)])
    assert claim(queue).release()
    assert keys_of(queue.try_poll_many(2)) == ["b", "a"]


def test_messages_behind_a_long_row_of_leases_are_found(
    queue: QueueFace, clock: ManualClock
) -> None:
    queue.offer_batch([Message(f"{n:03}", n, START - MINUTE) for n in range(300)])
    assert len(queue.try_poll_many(299)) == 299
    assert claim(queue).key == "299"
    queue.offer("early", 1, START - HOUR)
    queue.offer("late", 1)
    assert keys_of(queue.try_poll_many(5)) == ["early", "late"]
    clock.advance(DEFAULT_LEASE)
    assert len(queue.try_poll_many(1000)) == 302


@pytest.mark.timeout(20, func_only=True)
def test_a_clock_before_the_epoch_tells_the_time_too(store_url: str) -> None:
    clock = ManualClock(datetime(1960, 1, 1, tzinfo=UTC))
    # One face is enough, and must be the blocking one: a poll that spins would take the loop along.
    with Queue.open(store_url, "orders", clock=clock) as queue:
        queue.offer("a", 1)
        assert queue.stats().due == 1
        delivery = queue.try_poll()
        assert delivery is not None
        assert queue.try_poll() is None
        assert queue.stats().leased == 1
        clock.advance(DEFAULT_LEASE)
        again = queue.try_poll()
        assert again is not None
        assert again.release(HOUR)
        assert queue.stats().future == 1


def test_a_clock_set_back_hides_what_is_no_longer_due(queue: QueueFace, clock: ManualClock) -> None:
    queue.offer("a", 1)
    clock.set(START - SECOND)
    assert queue.try_poll() is None
    clock.set(START)
    assert claim(queue).key == "a"
