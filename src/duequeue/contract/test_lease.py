"""Leases: how long they last, and what comes back when they run out."""

from datetime import timedelta

import pytest

from duequeue import ManualClock, Message
from duequeue.contract.faces import QueueFace
from duequeue.contract.fixtures import START, OpenQueue
from duequeue.contract.phrases import (
    DEFAULT_LEASE,
    DEFAULT_POLL_INTERVAL,
    HOUR,
    MILLISECOND,
    MINUTE,
    SECOND,
    claim,
    keys_of,
    snapshot,
)


@pytest.mark.parametrize("lease", [MILLISECOND, 30 * SECOND, timedelta(days=400)])
def test_a_lease_lasts_as_long_as_asked_for(
    open_queue: OpenQueue, clock: ManualClock, lease: timedelta
) -> None:
    queue = open_queue(lease=lease)
    queue.offer("a", 1)
    assert claim(queue).lease_until == START + lease
    clock.advance(lease - MILLISECOND)
    assert queue.try_poll() is None
    clock.advance(MILLISECOND)
    assert claim(queue).key == "a"


def test_a_lease_lasts_five_minutes_unless_asked_for(queue: QueueFace) -> None:
    queue.offer("a", 1)
    assert claim(queue).lease_until == START + 5 * MINUTE


def test_what_comes_back_says_so(queue: QueueFace, clock: ManualClock) -> None:
    queue.offer("a", 1, START - MINUTE)
    for attempt in (1, 2, 3):
        delivery = claim(queue)
        assert (delivery.attempt, delivery.redelivered) == (attempt, attempt > 1)
        assert (delivery.payload, delivery.due_at) == (1, START - MINUTE)
        assert delivery.delivered_at == clock.now()
        clock.advance(DEFAULT_LEASE)


def test_what_comes_back_takes_its_original_place(queue: QueueFace, clock: ManualClock) -> None:
    queue.offer_batch([Message(str(n), n, START + n * SECOND) for n in range(4)])
    clock.advance(MINUTE)
    assert keys_of(queue.try_poll_many(2)) == ["0", "1"]
    clock.advance(DEFAULT_LEASE)
    assert keys_of(queue.try_poll_many(4)) == ["0", "1", "2", "3"]


def test_a_lease_shorter_than_the_poll_interval_gives_back_the_original_place_too(
    open_queue: OpenQueue, clock: ManualClock
) -> None:
    queue = open_queue(lease=SECOND, poll_interval=HOUR)
    queue.offer_batch([Message(key, 1, START - 10 * SECOND) for key in "abcdef"])
    assert claim(queue).key == "a"
    assert claim(queue).ack()
    clock.advance(SECOND)
    assert keys_of(queue.try_poll_many(2)) == ["a", "c"]
    clock.advance(SECOND)
    assert [claim(queue).key for _ in range(5)] == ["a", "c", "d", "e", "f"]


def test_each_lease_that_runs_out_gives_back_its_original_place(
    open_queue: OpenQueue, clock: ManualClock
) -> None:
    queue = open_queue(lease=10 * SECOND, poll_interval=HOUR)
    queue.offer_batch([Message(key, 1, START - HOUR) for key in "abcd"])
    assert claim(queue).key == "a"
    clock.advance(5 * SECOND)
    assert claim(queue).key == "b"
    clock.advance(5 * SECOND)
    assert claim(queue).key == "a"
    clock.advance(SECOND)
    assert claim(queue).key == "c"
    clock.advance(4 * SECOND)
    assert claim(queue).key == "b"
    assert claim(queue).key == "d"


def test_a_shortened_lease_that_runs_out_gives_back_the_original_place(
    open_queue: OpenQueue, clock: ManualClock
) -> None:
    queue = open_queue(poll_interval=HOUR)
    queue.offer_batch([Message(key, 1, START - HOUR) for key in "abc"])
    assert claim(queue).extend(SECOND)
    assert claim(queue).key == "b"
    clock.advance(SECOND)
    assert [claim(queue).key for _ in range(2)] == ["a", "c"]


def test_an_expired_lease_of_another_consumer_is_found(
    open_queue: OpenQueue, clock: ManualClock
) -> None:
    dead, alive = open_queue(lease=SECOND), open_queue(lease=HOUR)
    dead.offer_batch([Message("a", 1), Message("b", 1)])
    assert claim(dead).key == "a"
    assert claim(alive).key == "b"
    clock.advance(SECOND + DEFAULT_POLL_INTERVAL)
    delivery = claim(alive)
    assert (delivery.key, delivery.attempt) == ("a", 2)


def test_only_the_expired_leases_come_back(queue: QueueFace, clock: ManualClock) -> None:
    queue.offer("a", 1)
    claim(queue)
    clock.advance(MINUTE)
    queue.offer("b", 1)
    claim(queue)
    clock.advance(DEFAULT_LEASE - MINUTE)
    assert keys_of(queue.try_poll_many(10)) == ["a"]


def test_extend_counts_from_now_and_takes_the_lease_of_the_queue(
    open_queue: OpenQueue, clock: ManualClock
) -> None:
    queue = open_queue(lease=MINUTE)
    queue.offer("a", 1)
    delivery = claim(queue)
    clock.advance(40 * SECOND)
    assert delivery.extend()
    assert snapshot(queue, "a").leased_until == START + 100 * SECOND
    assert delivery.lease_until == START + 100 * SECOND
    clock.advance(MINUTE - MILLISECOND)
    assert queue.try_poll() is None
    clock.advance(MILLISECOND)
    assert claim(queue).attempt == 2


@pytest.mark.parametrize("lease", [SECOND, HOUR], ids=["shorter", "longer"])
def test_extend_may_shorten_or_lengthen(
    queue: QueueFace, clock: ManualClock, lease: timedelta
) -> None:
    queue.offer("a", 1)
    assert claim(queue).extend(lease)
    clock.advance(lease - MILLISECOND)
    assert queue.try_poll() is None
    clock.advance(MILLISECOND)
    assert claim(queue).key == "a"


def test_extend_may_be_repeated_and_the_ack_still_wins(
    queue: QueueFace, clock: ManualClock
) -> None:
    queue.offer("a", 1)
    delivery = claim(queue)
    for _ in range(5):
        clock.advance(DEFAULT_LEASE - MILLISECOND)
        assert delivery.extend()
        assert queue.try_poll() is None
    assert delivery.ack()


def test_a_late_extend_wins_while_nobody_else_leased_it(
    queue: QueueFace, clock: ManualClock
) -> None:
    queue.offer("a", 1)
    delivery = claim(queue)
    clock.advance(2 * DEFAULT_LEASE)
    assert delivery.extend()
    assert queue.try_poll() is None
    assert delivery.ack()


def test_an_extend_that_lost_leaves_the_other_lease_alone(
    queue: QueueFace, clock: ManualClock
) -> None:
    queue.offer("a", 1)
    lost = claim(queue)
    clock.advance(DEFAULT_LEASE)
    holder = claim(queue)
    assert not lost.extend(timedelta(days=1))
    assert snapshot(queue, "a").leased_until == holder.lease_until


def test_a_lease_extended_after_its_end_gives_back_the_original_place_too(
    open_queue: OpenQueue, clock: ManualClock
) -> None:
    queue = open_queue(lease=SECOND, poll_interval=HOUR)
    queue.offer_batch([Message(key, 1, START - HOUR) for key in "ab"])
    _, late = queue.try_poll_many(2)
    clock.advance(SECOND)
    again = claim(queue)
    assert (again.key, late.extend()) == ("a", True)
    assert again.ack()
    queue.offer("c", 1)
    assert claim(queue).ack()
    clock.advance(SECOND)
    queue.offer("d", 1)
    assert [claim(queue).key for _ in range(2)] == ["b", "d"]


def test_leases_that_a_clock_made_live_again_give_back_the_original_places_too(
    open_queue: OpenQueue, clock: ManualClock
) -> None:
    queue = open_queue(lease=SECOND, poll_interval=HOUR)
    queue.offer_batch([Message(key, 1, START - HOUR) for key in "abc"])
    assert claim(queue).extend(SECOND / 2)
    assert keys_of(queue.try_poll_many(2)) == ["b", "c"]
    clock.advance(SECOND)
    assert claim(queue).ack()  # of a, whose end is noticed along with those of b and c
    clock.advance(-SECOND / 4)
    for key in "de":
        queue.offer(key, 1)
        assert claim(queue).ack()
    clock.advance(SECOND / 4)
    queue.offer("f", 1)
    assert [claim(queue).key for _ in range(3)] == ["b", "c", "f"]


def test_an_update_frees_a_message_although_a_clock_set_back_makes_its_lease_live_again(
    open_queue: OpenQueue, clock: ManualClock
) -> None:
    queue = open_queue(lease=MINUTE)
    queue.offer("a", 1)
    claim(queue)
    clock.advance(HOUR)
    queue.offer("b", 1, START - HOUR)
    assert claim(queue).key == "b"  # which notices that the lease of a has ended
    queue.offer("a", 2, START)
    clock.set(START + SECOND)
    assert claim(queue).payload == 2


def test_a_delivery_acked_twice_at_once_leaves_the_places_of_the_others(
    open_queue: OpenQueue, clock: ManualClock
) -> None:
    queue = open_queue(lease=SECOND, poll_interval=HOUR)
    queue.offer_batch([Message(key, 1, START - HOUR) for key in "ab"])
    first, _ = queue.try_poll_many(2)
    assert queue.ack_many([first, first]) == 1
    queue.offer("c", 1)
    assert claim(queue).ack()
    clock.advance(SECOND)
    queue.offer("d", 1)
    assert [claim(queue).key for _ in range(2)] == ["b", "d"]
