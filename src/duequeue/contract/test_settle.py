"""Ack, release and bury: who wins, and what a lost lease may still do (nothing)."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from duequeue import ManualClock, Message
from duequeue.contract.faces import DeliveryFace, QueueFace
from duequeue.contract.fixtures import START, OpenQueue
from duequeue.contract.phrases import (
    DAY,
    DEFAULT_LEASE,
    HOUR,
    MILLISECOND,
    MINUTE,
    SECOND,
    attempts_to_settle,
    claim,
    everything_in,
    keys_of,
    snapshot,
)

Loss = Callable[[QueueFace, ManualClock, DeliveryFace], object]


def leased_by_another(queue: QueueFace, clock: ManualClock, holder: DeliveryFace) -> None:
    clock.advance(DEFAULT_LEASE)
    assert claim(queue).attempt == 2


def leased_by_another_and_expired(
    queue: QueueFace, clock: ManualClock, holder: DeliveryFace
) -> None:
    leased_by_another(queue, clock, holder)
    clock.advance(DEFAULT_LEASE)


def updated(queue: QueueFace, clock: ManualClock, holder: DeliveryFace) -> None:
    queue.offer("a", "other", START)


def updated_and_changed_back(queue: QueueFace, clock: ManualClock, holder: DeliveryFace) -> None:
    queue.offer("a", "other", START)
    queue.offer("a", "same", START)


def dropped(queue: QueueFace, clock: ManualClock, holder: DeliveryFace) -> None:
    assert queue.drop("a")


def dropped_and_offered_again(queue: QueueFace, clock: ManualClock, holder: DeliveryFace) -> None:
    assert queue.drop("a")
    queue.offer("a", "same", START)


def dropped_offered_and_leased(queue: QueueFace, clock: ManualClock, holder: DeliveryFace) -> None:
    dropped_and_offered_again(queue, clock, holder)
    assert claim(queue).attempt == 1


def all_dropped_and_offered_again(
    queue: QueueFace, clock: ManualClock, holder: DeliveryFace
) -> None:
    assert queue.drop_all(queue.name) == 1
    queue.offer_batch([Message("a", "same", START)])


def acked(queue: QueueFace, clock: ManualClock, holder: DeliveryFace) -> None:
    assert holder.ack()


def acked_and_offered_again(queue: QueueFace, clock: ManualClock, holder: DeliveryFace) -> None:
    assert holder.ack()
    queue.offer("a", "same", START)


def released(queue: QueueFace, clock: ManualClock, holder: DeliveryFace) -> None:
    assert holder.release()


def released_and_leased(queue: QueueFace, clock: ManualClock, holder: DeliveryFace) -> None:
    assert holder.release()
    claim(queue)


def buried(queue: QueueFace, clock: ManualClock, holder: DeliveryFace) -> None:
    assert holder.bury("enough")


def buried_and_revived(queue: QueueFace, clock: ManualClock, holder: DeliveryFace) -> None:
    assert holder.bury("enough")
    assert queue.revive("a", START)


LOSSES: list[Loss] = [
    leased_by_another,
    leased_by_another_and_expired,
    updated,
    updated_and_changed_back,
    dropped,
    dropped_and_offered_again,
    dropped_offered_and_leased,
    all_dropped_and_offered_again,
    acked,
    acked_and_offered_again,
    released,
    released_and_leased,
    buried,
    buried_and_revived,
]


@pytest.mark.parametrize("lose", LOSSES, ids=lambda loss: loss.__name__)
def test_a_lost_lease_changes_nothing(queue: QueueFace, clock: ManualClock, lose: Loss) -> None:
    queue.offer("a", "same", START)
    holder = claim(queue)
    lose(queue, clock, holder)
    before = everything_in(queue, "a")
    assert attempts_to_settle(holder) == [False] * 4
    assert queue.ack_many([holder]) == 0
    assert everything_in(queue, "a") == before


def test_an_ack_deletes(queue: QueueFace, clock: ManualClock) -> None:
    queue.offer("a", 1)
    assert claim(queue).ack()
    assert queue.read("a") is None
    assert queue.stats().total == 0
    clock.advance(DAY)
    assert queue.try_poll() is None


def test_the_second_ack_loses(queue: QueueFace) -> None:
    queue.offer("a", 1)
    delivery = claim(queue)
    assert [delivery.ack(), delivery.ack()] == [True, False]


def test_a_late_ack_deletes_while_nobody_else_leased_it(
    queue: QueueFace, clock: ManualClock
) -> None:
    queue.offer("a", 1)
    delivery = claim(queue)
    clock.advance(DAY)
    assert delivery.ack()
    assert queue.try_poll() is None


def test_the_new_holder_settles_what_the_old_one_lost(queue: QueueFace, clock: ManualClock) -> None:
    queue.offer("a", 1)
    lost = claim(queue)
    clock.advance(DEFAULT_LEASE)
    holder = claim(queue)
    assert not lost.ack()
    assert holder.ack()
    assert not queue.contains("a")


def test_an_ack_touches_only_its_own_message(queue: QueueFace) -> None:
    queue.offer_batch([Message(key, 1) for key in "abc"])
    first, *_ = queue.try_poll_many(3)
    assert first.ack()
    assert [queue.contains(key) for key in "abc"] == [False, True, True]


def test_a_release_makes_it_due_at_once_and_keeps_the_attempts(queue: QueueFace) -> None:
    queue.offer("a", 1, START - MINUTE)
    assert claim(queue).release()
    assert snapshot(queue, "a").attempts == 1
    delivery = claim(queue)
    assert (delivery.attempt, delivery.redelivered) == (2, True)
    assert delivery.due_at == START - MINUTE


def test_a_release_with_a_delay_counts_from_now(queue: QueueFace, clock: ManualClock) -> None:
    queue.offer("a", 1)
    delivery = claim(queue)
    clock.advance(MINUTE)
    assert delivery.release(HOUR)
    clock.advance(HOUR - MILLISECOND)
    assert queue.try_poll() is None
    clock.advance(MILLISECOND)
    again = claim(queue)
    assert (again.attempt, again.due_at) == (2, START)


def test_a_release_may_last_longer_than_the_lease(queue: QueueFace, clock: ManualClock) -> None:
    queue.offer("a", 1)
    assert claim(queue).release(3 * DEFAULT_LEASE)
    clock.advance(2 * DEFAULT_LEASE)
    assert queue.try_poll() is None


def test_a_released_message_whose_next_lease_runs_out_keeps_its_place(
    queue: QueueFace, clock: ManualClock
) -> None:
    queue.offer_batch([Message("a", 1, START), Message("b", 1, START + SECOND)])
    assert claim(queue).release(2 * SECOND)
    clock.advance(2 * SECOND)
    assert keys_of(queue.try_poll_many(2)) == ["b", "a"]
    clock.advance(DEFAULT_LEASE)
    assert keys_of(queue.try_poll_many(2)) == ["b", "a"]


@pytest.mark.parametrize("delay", [timedelta(0), HOUR], ids=["now", "later"])
def test_a_late_release_wins_while_nobody_else_leased_it(
    queue: QueueFace, clock: ManualClock, delay: timedelta
) -> None:
    queue.offer("a", 1)
    delivery = claim(queue)
    clock.advance(2 * DEFAULT_LEASE)
    assert delivery.release(delay)
    clock.advance(delay)
    assert claim(queue).attempt == 2


def test_a_late_bury_wins_while_nobody_else_leased_it(queue: QueueFace, clock: ManualClock) -> None:
    queue.offer("a", 1)
    delivery = claim(queue)
    clock.advance(2 * DEFAULT_LEASE)
    assert delivery.bury("too slow")
    assert queue.stats().buried == 1


def test_ack_many_counts_the_acks_that_won(queue: QueueFace, clock: ManualClock) -> None:
    queue.offer_batch([Message(key, 1) for key in "abcdef"])
    deliveries = queue.try_poll_many(6)
    deliveries[0].ack()
    queue.offer("b", 2)
    queue.drop("c")
    deliveries[3].release(HOUR)
    assert queue.ack_many(deliveries) == 2
    assert [queue.contains(key) for key in "abcdef"] == [False, True, False, True, False, False]


def test_ack_many_of_nothing_is_nothing(queue: QueueFace) -> None:
    queue.offer("a", 1)
    assert queue.ack_many([]) == 0
    assert queue.ack_many(iter(())) == 0
    assert queue.contains("a")


def test_ack_many_takes_any_iterable_and_counts_a_delivery_once(queue: QueueFace) -> None:
    queue.offer("a", 1)
    delivery = claim(queue)
    assert queue.ack_many(iter([delivery, delivery])) == 1
    assert queue.ack_many([delivery]) == 0


def test_ack_many_of_deliveries_from_several_polls(queue: QueueFace, clock: ManualClock) -> None:
    queue.offer_batch([Message(f"{n:04}", n) for n in range(2500)])
    deliveries = [one for _ in range(5) for one in queue.try_poll_many(500)]
    clock.advance(2 * DEFAULT_LEASE)
    assert queue.ack_many(deliveries) == 2500
    assert queue.stats().total == 0


def test_a_batch_may_be_settled_in_part(queue: QueueFace, clock: ManualClock) -> None:
    queue.offer_batch([Message(key, 1) for key in "abcd"])
    a, b, c, d = queue.try_poll_many(4)
    assert queue.ack_many([b, d]) == 2
    assert a.ack()
    assert queue.try_poll() is None
    clock.advance(DEFAULT_LEASE)
    assert claim(queue).key == c.key


def test_a_batch_may_be_settled_in_every_way(queue: QueueFace) -> None:
    queue.offer_batch([Message(key, 1) for key in "abcd"])
    a, b, c, d = queue.try_poll_many(4)
    assert [a.ack(), b.release(), c.bury("enough"), d.extend()] == [True] * 4
    stats = queue.stats()
    assert (stats.due, stats.leased, stats.buried) == (1, 1, 1)


def test_any_queue_of_that_name_may_ack(open_queue: OpenQueue) -> None:
    consumer, other = open_queue(), open_queue()
    consumer.offer_batch([Message("a", 1), Message("b", 1)])
    assert other.ack_many(consumer.try_poll_many(2)) == 2
    assert consumer.stats().total == 0
