"""Every known defect of the library this design comes from, by name, so that none comes back.

Defects of one store alone are tested with that store.
"""

from datetime import timedelta
from threading import Barrier

import pytest

from duequeue import ManualClock, Message, OfferOutcome
from duequeue.contract.faces import Face, QueueFace
from duequeue.contract.fixtures import START, OpenQueue
from duequeue.contract.phrases import (
    DEFAULT_LEASE,
    HOUR,
    MILLISECOND,
    MINUTE,
    PATIENCE,
    SECOND,
    PickyCodec,
    claim,
    in_background,
    keys_of,
    snapshot,
)

CREATED, UPDATED, IGNORED = OfferOutcome.CREATED, OfferOutcome.UPDATED, OfferOutcome.IGNORED


def test_an_undecodable_payload_does_not_block_the_queue(open_queue: OpenQueue) -> None:
    queue = open_queue(codec=PickyCodec())
    queue.offer("bad", "rotten", -HOUR)
    queue.offer("good", "sound")
    assert claim(queue).key == "good"
    assert keys_of(queue.buried(10)) == ["bad"]


def test_an_insert_only_batch_keeps_its_new_messages_when_one_key_exists(queue: QueueFace) -> None:
    queue.offer("b", "old")
    batch = [Message(key, "new", replace=False) for key in "abc"]
    assert queue.offer_batch(batch) == [CREATED, IGNORED, CREATED]
    assert [snapshot(queue, key).payload for key in "abc"] == ["new", "old", "new"]


def test_an_update_racing_an_ack_neither_spins_nor_gets_lost(open_queue: OpenQueue) -> None:
    producer, consumer = open_queue(), open_queue()
    for n in range(20):
        producer.offer("a", n, START)
        delivery = claim(consumer)
        ready = Barrier(2)

        def update(number: int = n, ready: Barrier = ready) -> OfferOutcome:
            ready.wait()
            return producer.offer("a", f"update of {number}", START)

        updating = in_background(update)
        ready.wait()
        acked = delivery.ack()
        outcome = updating.result(PATIENCE)
        assert outcome is (CREATED if acked else UPDATED)
        assert snapshot(producer, "a").payload == f"update of {n}"
        assert producer.drop("a")


def test_a_time_below_the_millisecond_does_not_steal_the_lease(
    queue: QueueFace, clock: ManualClock
) -> None:
    due = START + timedelta(microseconds=123_456)
    queue.offer("a", 1, due)
    clock.advance(SECOND)
    delivery = claim(queue)
    assert queue.offer("a", 1, due) is IGNORED
    assert queue.offer_batch([Message("a", 1, due)]) == [IGNORED]
    assert delivery.ack()
    assert not queue.contains("a")


def test_the_first_delivery_of_a_batch_is_not_a_redelivery(
    queue: QueueFace, clock: ManualClock
) -> None:
    queue.offer_batch([Message(str(n), n) for n in range(10)])
    assert [one.redelivered for one in queue.try_poll_many(10)] == [False] * 10
    clock.advance(DEFAULT_LEASE)
    assert [one.redelivered for one in queue.try_poll_many(10)] == [True] * 10


def test_a_batch_comes_in_due_order_not_in_insertion_order(queue: QueueFace) -> None:
    minutes = [5, 2, 9, 1, 7, 3, 8]
    for ago in minutes:
        queue.offer(str(ago), ago, -ago * MINUTE)
    polled = [one.payload for one in queue.try_poll_many(10)]
    assert polled == sorted(minutes, reverse=True)


def test_the_limit_binds(queue: QueueFace) -> None:
    queue.offer_batch([Message(str(n), n) for n in range(200)])
    for taken in range(5, 55, 5):
        assert len(queue.try_poll_many(5)) == 5
        assert queue.stats().leased == taken


def test_the_limit_binds_after_a_drain(queue: QueueFace) -> None:
    queue.offer_batch([Message(str(n), n) for n in range(1000)])
    assert queue.ack_many(queue.try_poll_many(1000)) == 1000
    queue.offer_batch([Message(str(n), n) for n in range(1000)])
    assert len(queue.try_poll_many(7)) == 7
    assert queue.stats().leased == 7


def test_a_late_ack_deletes_on_every_store(queue: QueueFace, clock: ManualClock) -> None:
    queue.offer("a", 1)
    delivery = claim(queue)
    clock.advance(2 * DEFAULT_LEASE)
    assert delivery.ack()
    assert queue.stats().total == 0


def test_an_ack_is_not_fooled_by_an_identical_message(queue: QueueFace) -> None:
    queue.offer("a", 1, START)
    old = claim(queue)
    queue.drop("a")
    queue.offer("a", 1, START)
    new = claim(queue)
    assert not old.ack()
    assert new.ack()


def test_ties_come_in_insertion_order_on_every_store(queue: QueueFace) -> None:
    for key in "zebra":
        queue.offer(key, 1, START)
    assert keys_of(queue.try_poll_many(10)) == list("zebra")


def test_instants_are_milliseconds_on_every_store(queue: QueueFace, clock: ManualClock) -> None:
    clock.advance(timedelta(microseconds=1_999))
    queue.offer("a", 1)
    delivery = claim(queue)
    assert delivery.due_at == delivery.delivered_at == START + MILLISECOND
    assert delivery.lease_until == START + MILLISECOND + DEFAULT_LEASE


def test_the_password_is_not_in_the_repr_of_an_open_call_that_failed(face: Face) -> None:
    with pytest.raises(ValueError, match="memory") as refusal:
        face.open("mongodb://me:hunter2@localhost/x", "orders")
    assert "hunter2" not in str(refusal.value)
