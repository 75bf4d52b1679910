"""Buried: parked with a reason, looked at, revived or purged."""

from datetime import datetime, timedelta

import pytest

from duequeue import ManualClock, Message, OfferOutcome, State
from duequeue.contract.faces import QueueFace
from duequeue.contract.fixtures import START
from duequeue.contract.phrases import (
    DAY,
    HOUR,
    MILLISECOND,
    MINUTE,
    SECOND,
    claim,
    keys_of,
    snapshot,
)


def bury(queue: QueueFace, key: str, payload: object = 1, reason: str = "enough") -> None:
    queue.offer(key, payload)
    delivery = claim(queue)
    assert delivery.key == key
    assert delivery.bury(reason)


def test_a_buried_message_is_kept_with_reason_and_attempts(
    queue: QueueFace, clock: ManualClock
) -> None:
    queue.offer("a", {"n": 1}, START - MINUTE)
    claim(queue).release()
    clock.advance(HOUR)
    assert claim(queue).bury("the printer \N{FIRE} burns")
    [buried] = queue.buried(10)
    assert (buried.key, buried.payload, buried.raw) == ("a", {"n": 1}, b'{"n":1}')
    assert (buried.due_at, buried.buried_at) == (START - MINUTE, START + HOUR)
    assert (buried.attempts, buried.reason) == (2, "the printer \N{FIRE} burns")


def test_a_buried_message_is_out_of_the_queue(queue: QueueFace, clock: ManualClock) -> None:
    bury(queue, "a")
    clock.advance(DAY)
    assert queue.try_poll() is None
    assert not queue.contains("a")
    assert not queue.drop("a")
    assert queue.drop_all(queue.name) == 0
    stats = queue.stats()
    assert (stats.total, stats.due, stats.leased, stats.future, stats.buried) == (0, 0, 0, 0, 1)
    assert keys_of(queue.buried(10)) == ["a"]


def test_a_buried_key_is_free(queue: QueueFace) -> None:
    bury(queue, "a", 1)
    assert queue.offer("a", 1, START) is OfferOutcome.CREATED
    assert queue.offer_batch([Message("a", 1, START)]) == [OfferOutcome.IGNORED]
    stats = queue.stats()
    assert (stats.total, stats.buried) == (1, 1)
    delivery = claim(queue)
    assert (delivery.attempt, delivery.ack()) == (1, True)
    assert queue.stats().buried == 1


def test_the_oldest_burial_is_listed_first(queue: QueueFace, clock: ManualClock) -> None:
    for key in "bac":
        bury(queue, key)
        clock.advance(SECOND)
    assert keys_of(queue.buried(10)) == ["b", "a", "c"]
    assert keys_of(queue.buried(2)) == ["b", "a"]


def test_burials_of_one_instant_are_listed_in_the_order_they_happened(queue: QueueFace) -> None:
    for key in "bac":
        bury(queue, key)
    assert keys_of(queue.buried(10)) == ["b", "a", "c"]


def test_no_burials_are_listed_when_none_are_asked_for(queue: QueueFace) -> None:
    bury(queue, "a")
    assert queue.buried(0) == []
    assert queue.buried(-1) == []


def test_nothing_is_buried_at_first(queue: QueueFace) -> None:
    assert queue.buried(10) == []
    assert queue.stats().buried == 0


def test_a_revived_message_is_due_now_as_if_never_delivered(
    queue: QueueFace, clock: ManualClock
) -> None:
    bury(queue, "a", "payload")
    clock.advance(HOUR)
    assert queue.revive("a")
    assert queue.buried(10) == []
    assert queue.stats().buried == 0
    delivery = claim(queue)
    assert (delivery.payload, delivery.due_at) == ("payload", START + HOUR)
    assert (delivery.attempt, delivery.redelivered) == (1, False)
    assert delivery.ack()


@pytest.mark.parametrize("due", [START + HOUR, HOUR], ids=["instant", "duration"])
def test_a_message_may_be_revived_for_later(
    queue: QueueFace, clock: ManualClock, due: datetime | timedelta
) -> None:
    bury(queue, "a")
    assert queue.revive("a", due)
    assert queue.try_poll() is None
    clock.advance(HOUR)
    assert claim(queue).due_at == START + HOUR


def test_an_identical_offer_after_a_revival_is_ignored(queue: QueueFace) -> None:
    bury(queue, "a", 1)
    queue.revive("a", START)
    assert queue.offer("a", 1, START) is OfferOutcome.IGNORED


def test_there_must_be_something_to_revive(queue: QueueFace) -> None:
    assert not queue.revive("a")
    bury(queue, "a")
    assert queue.revive("a")
    assert not queue.revive("a")


def test_a_live_key_is_not_overwritten_by_a_revival(queue: QueueFace) -> None:
    bury(queue, "a", "old")
    queue.offer("a", "new")
    assert not queue.revive("a")
    assert snapshot(queue, "a").payload == "new"
    assert queue.stats().buried == 1


def test_the_most_recent_burial_of_a_key_is_revived(queue: QueueFace, clock: ManualClock) -> None:
    for payload in ("first", "second"):
        bury(queue, "a", payload)
        clock.advance(SECOND)
    assert queue.revive("a")
    assert claim(queue).payload == "second"
    assert [buried.payload for buried in queue.buried(10)] == ["first"]


def test_of_burials_at_one_instant_the_later_one_is_revived(queue: QueueFace) -> None:
    bury(queue, "a", "first")
    bury(queue, "a", "second")
    assert queue.revive("a")
    assert claim(queue).payload == "second"


def test_of_burials_alike_in_everything_the_later_one_is_revived(queue: QueueFace) -> None:
    for key in "aba":
        bury(queue, key)
    assert queue.revive("a")
    assert keys_of(queue.buried(10)) == ["a", "b"]


def test_purging_takes_what_was_buried_strictly_before(
    queue: QueueFace, clock: ManualClock
) -> None:
    for key in "abc":
        bury(queue, key)
        clock.advance(SECOND)
    assert queue.purge_buried(START) == 0
    assert queue.purge_buried(START + SECOND) == 1
    assert keys_of(queue.buried(10)) == ["b", "c"]
    assert queue.purge_buried(START + 2 * SECOND + MILLISECOND) == 2
    assert queue.buried(10) == []


def test_purging_leaves_live_messages(queue: QueueFace, clock: ManualClock) -> None:
    bury(queue, "a")
    queue.offer("a", 1)
    assert queue.purge_buried(START + DAY) == 1
    assert queue.contains("a")


def test_a_buried_message_can_be_read(queue: QueueFace) -> None:
    bury(queue, "a", "payload", "enough")
    found = snapshot(queue, "a")
    assert (found.state, found.payload, found.attempts) == (State.BURIED, "payload", 1)
    assert (found.due_at, found.leased_until, found.reason) == (START, None, "enough")


def test_a_live_message_is_read_before_a_buried_one(queue: QueueFace) -> None:
    bury(queue, "a", "old")
    queue.offer("a", "new", HOUR)
    found = snapshot(queue, "a")
    assert (found.state, found.payload) == (State.FUTURE, "new")
