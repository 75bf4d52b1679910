"""Messages that expire are dropped instead of delivered too late."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from duequeue import Expired, ManualClock, Message, OfferOutcome, Outcome
from duequeue.contract.faces import QueueFace
from duequeue.contract.fixtures import Consume, OpenQueue
from duequeue.contract.phrases import (
    DEFAULT_LEASE,
    HOUR,
    MILLISECOND,
    MINUTE,
    SECOND,
    claim,
    keys_of,
    snapshot,
)
from duequeue.contract.stage import until
from duequeue.flows.removing import EXPIRED_AT_ONCE


def test_a_message_is_delivered_until_just_before_its_expiry(
    queue: QueueFace, clock: ManualClock
) -> None:
    queue.offer_batch([Message("a", 1, expires=MINUTE), Message("b", 2, expires=MINUTE)])
    clock.advance(MINUTE - MILLISECOND)
    delivery = claim(queue)
    assert (delivery.key, delivery.expires_at) == ("a", clock.now() + MILLISECOND)
    clock.advance(MILLISECOND)
    assert queue.try_poll() is None
    assert not queue.contains("b")
    assert delivery.ack(), "a message that was delivered in time belongs to its holder"


def test_an_expiry_is_an_instant_or_a_time_from_now(queue: QueueFace, clock: ManualClock) -> None:
    queue.offer("span", 1, MINUTE, expires=HOUR)
    queue.offer("instant", 1, clock.now() + MINUTE, expires=clock.now() + HOUR)
    queue.offer("never", 1, MINUTE)
    expiries = [snapshot(queue, key).expires_at for key in ("span", "instant", "never")]
    assert expiries == [clock.now() + HOUR, clock.now() + HOUR, None]
    clock.advance(MINUTE)
    found = {each.key: each.expires_at for each in queue.try_poll_many(3)}
    end = clock.now() + HOUR - MINUTE
    assert found == {"span": end, "instant": end, "never": None}


def test_a_batch_has_expiries_too(queue: QueueFace, clock: ManualClock) -> None:
    now = clock.now()
    queue.offer_batch(
        [Message("a", 1, expires=now + MINUTE), Message("b", 1), Message("c", 1, expires=HOUR)]
    )
    assert [snapshot(queue, key).expires_at for key in "abc"] == [now + MINUTE, None, now + HOUR]


def test_a_poll_goes_on_behind_what_has_expired(queue: QueueFace, clock: ManualClock) -> None:
    queue.offer_batch([Message(f"old-{n}", n, -HOUR, expires=SECOND) for n in range(5)])
    queue.offer_batch([Message(f"new-{n}", n) for n in range(3)])
    clock.advance(SECOND)
    assert keys_of(queue.try_poll_many(2)) == ["new-0", "new-1"]
    assert claim(queue).key == "new-2"
    assert queue.stats().total == 3


def test_a_mixed_batch_comes_full_and_in_order(queue: QueueFace, clock: ManualClock) -> None:
    queue.offer_batch(
        [
            Message(str(n), n, -HOUR + n * SECOND, expires=SECOND if n % 2 else None)
            for n in range(7)
        ]
    )
    clock.advance(SECOND)
    assert keys_of(queue.try_poll_many(4)) == ["0", "2", "4", "6"]
    assert queue.stats().total == 4


def test_many_that_have_expired_do_not_starve_a_poll_for_one(
    queue: QueueFace, clock: ManualClock
) -> None:
    many = EXPIRED_AT_ONCE + 50
    queue.offer_batch([Message(f"old-{n}", n, -HOUR, expires=SECOND) for n in range(many)])
    queue.offer("new", 1)
    clock.advance(SECOND)
    assert claim(queue).key == "new"
    assert queue.stats().total == 1


def test_a_waiting_poll_drops_and_goes_on_waiting(queue: QueueFace, clock: ManualClock) -> None:
    queue.offer("old", 1, expires=SECOND)
    clock.advance(SECOND)
    assert queue.poll(timeout=timedelta(0)) is None
    assert not queue.contains("old")


def test_what_comes_back_too_late_is_dropped(queue: QueueFace, clock: ManualClock) -> None:
    queue.offer_batch([Message("lost", 1, expires=MINUTE), Message("released", 1, expires=MINUTE)])
    lost, released = queue.try_poll_many(2)
    assert released.release(MINUTE)
    clock.advance(DEFAULT_LEASE)
    assert queue.try_poll_many(2) == []
    assert queue.stats().total == 0
    assert not lost.ack()


def test_it_leaves_a_row_in_the_history(open_queue: OpenQueue, clock: ManualClock) -> None:
    queue = open_queue(history=True)
    due_at = clock.now()
    queue.offer_batch([Message("fresh", 1, expires=MINUTE), Message("seen", 1, expires=MINUTE)])
    _, seen = queue.try_poll_many(2)
    queue.offer("fresh", 2, due_at, expires=MINUTE)
    assert seen.key == "seen"
    clock.advance(DEFAULT_LEASE)
    assert queue.try_poll() is None
    rows = {row.key: row for row in queue.history() if row.outcome is Outcome.EXPIRED}
    assert {key: row.attempts for key, row in rows.items()} == {"fresh": 0, "seen": 1}
    assert rows["seen"].due_at == due_at
    assert rows["seen"].delivered_at is None
    assert rows["seen"].settled_at == clock.now()


def test_each_leaves_a_row_when_many_expire(open_queue: OpenQueue, clock: ManualClock) -> None:
    queue = open_queue(history=True)
    queue.offer_batch([Message(f"old-{n}", n, expires=SECOND) for n in range(20)])
    clock.advance(SECOND)
    assert queue.try_poll() is None
    rows = queue.history()
    assert {row.key for row in rows} == {f"old-{n}" for n in range(20)}
    assert {(row.outcome, row.attempts) for row in rows} == {(Outcome.EXPIRED, 0)}


def test_it_is_an_event(queue: QueueFace, clock: ManualClock) -> None:
    events: list[object] = []
    queue_of_either_face: Any = queue
    queue.offer_batch([Message("a", 1, expires=SECOND), Message("b", 1, expires=SECOND)])
    queue_of_either_face.events.subscribe(events.append)
    clock.advance(SECOND)
    assert queue.try_poll() is None
    assert events == [Expired("orders", "a"), Expired("orders", "b")]


def test_a_consumer_never_sees_it(queue: QueueFace, consume: Consume, clock: ManualClock) -> None:
    queue.offer("old", 1, expires=SECOND)
    clock.advance(SECOND)
    handled: list[str] = []
    queue.offer("new", 1)
    consume(queue, lambda delivery: handled.append(delivery.key), max_attempts=1)
    until(lambda: queue.stats().total == 0)
    assert (handled, queue.stats().buried) == (["new"], 0)


def test_it_is_dropped_and_not_buried_after_too_many_attempts(
    open_queue: OpenQueue, clock: ManualClock
) -> None:
    queue = open_queue(max_attempts=1)
    queue.offer("a", 1, expires=MINUTE)
    claim(queue)
    clock.advance(DEFAULT_LEASE)
    assert queue.try_poll() is None
    assert queue.buried(1) == []


def test_a_list_shows_it_and_a_new_due_time_keeps_it(queue: QueueFace, clock: ManualClock) -> None:
    queue.offer("a", 1, MINUTE, expires=HOUR)
    expires_at = clock.now() + HOUR
    assert queue.reschedule("a", HOUR - SECOND)
    assert [each.expires_at for each in queue.list().messages] == [expires_at]
    clock.advance(HOUR)
    assert queue.try_poll() is None
    assert not queue.contains("a")


# Offers


def test_another_expiry_updates(queue: QueueFace, clock: ManualClock) -> None:
    due_at = clock.now()
    assert queue.offer("a", 1, due_at, expires=MINUTE) is OfferOutcome.CREATED
    assert queue.offer("a", 1, due_at, expires=MINUTE) is OfferOutcome.IGNORED
    assert queue.offer("a", 1, due_at, expires=HOUR, replace=False) is OfferOutcome.IGNORED
    assert snapshot(queue, "a").expires_at == due_at + MINUTE
    held = claim(queue)
    assert queue.offer("a", 1, due_at, expires=HOUR) is OfferOutcome.UPDATED
    assert not held.ack()
    assert snapshot(queue, "a").expires_at == due_at + HOUR
    assert queue.offer("a", 1, due_at) is OfferOutcome.UPDATED
    assert snapshot(queue, "a").expires_at is None
    assert queue.offer("a", 1, due_at) is OfferOutcome.IGNORED
    assert queue.offer("a", 1, due_at, expires=HOUR) is OfferOutcome.UPDATED
    assert snapshot(queue, "a").expires_at == due_at + HOUR


def test_an_update_without_an_expiry_saves_the_message(
    queue: QueueFace, clock: ManualClock
) -> None:
    queue.offer("a", 1, expires=SECOND)
    queue.offer("a", 2)
    clock.advance(HOUR)
    assert claim(queue).payload == 2


def test_a_revived_message_does_not_expire(queue: QueueFace, clock: ManualClock) -> None:
    queue.offer("a", 1, expires=MINUTE)
    claim(queue).bury("enough")
    assert snapshot(queue, "a").expires_at is None
    clock.advance(HOUR)
    assert queue.revive("a")
    assert claim(queue).expires_at is None


def test_an_expiry_is_floored_to_the_millisecond(queue: QueueFace, clock: ManualClock) -> None:
    queue.offer("a", 1, expires=clock.now() + timedelta(microseconds=1999))
    assert snapshot(queue, "a").expires_at == clock.now() + MILLISECOND


@pytest.mark.argument_checks
@pytest.mark.parametrize("expires", [MINUTE, MINUTE + timedelta(microseconds=999), -HOUR])
def test_an_expiry_must_come_after_the_due_time(queue: QueueFace, expires: timedelta) -> None:
    with pytest.raises(ValueError, match="expires must come after the due time"):
        queue.offer("a", 1, MINUTE, expires=expires)
    with pytest.raises(ValueError, match="expires must come after the due time"):
        queue.offer_batch([Message("b", 1), Message("a", 1, MINUTE, expires=expires)])
    assert queue.stats().total == 0


def test_an_expiry_that_has_passed_is_legal_if_it_comes_after_the_due_time(
    queue: QueueFace,
) -> None:
    queue.offer("a", 1, -HOUR, expires=-MINUTE)
    assert queue.try_poll() is None
    assert not queue.contains("a")


@pytest.mark.argument_checks
def test_an_expiry_must_be_aware_and_a_time(queue: QueueFace) -> None:
    bad: list[tuple[Any, type[Exception]]] = [
        (datetime(2030, 1, 1), ValueError),  # noqa: DTZ001 - it must be refused
        (60, TypeError),
        ("tomorrow", TypeError),
        (timedelta.max, ValueError),
    ]
    for expires, error in bad:
        with pytest.raises(error, match="expires must"):
            queue.offer("a", 1, expires=expires)
    assert queue.stats().total == 0
