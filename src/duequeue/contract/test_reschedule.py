"""Another due time for a message in the queue, without its payload."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from duequeue import Event, ManualClock, Message, Offered, OfferOutcome, State
from duequeue.contract.faces import QueueFace
from duequeue.contract.fixtures import START, OpenQueue
from duequeue.contract.phrases import (
    DAY,
    DEFAULT_LEASE,
    HOUR,
    MINUTE,
    SECOND,
    attempts_to_settle,
    claim,
    keys_of,
    snapshot,
)


@pytest.mark.parametrize("due", [START + HOUR, HOUR], ids=["instant", "duration"])
def test_a_message_comes_when_it_is_rescheduled_for(
    queue: QueueFace, clock: ManualClock, due: datetime | timedelta
) -> None:
    queue.offer("a", {"n": 1}, headers={"trace": "1"})
    assert queue.reschedule("a", due)
    found = snapshot(queue, "a")
    assert (found.due_at, found.deliver_at, found.state) == (
        START + HOUR,
        START + HOUR,
        State.FUTURE,
    )
    assert queue.try_poll() is None
    clock.advance(HOUR)
    delivery = claim(queue)
    assert (delivery.payload, delivery.due_at) == ({"n": 1}, START + HOUR)
    assert (delivery.headers, delivery.attempt) == ({"trace": "1"}, 1)


def test_a_future_message_runs_now(queue: QueueFace, clock: ManualClock) -> None:
    queue.offer("a", 1, DAY)
    clock.advance(HOUR)
    assert queue.run_now("a")
    delivery = claim(queue)
    assert (delivery.key, delivery.due_at, delivery.attempt) == ("a", START + HOUR, 1)


def test_a_message_may_be_rescheduled_for_earlier_than_any_that_was_claimed(
    queue: QueueFace, clock: ManualClock
) -> None:
    queue.offer_batch([Message("a", 1), Message("b", 1), Message("late", 1, DAY)])
    clock.advance(HOUR)
    assert claim(queue).key == "a"
    assert queue.reschedule("late", START - HOUR)
    assert keys_of(queue.try_poll_many(2)) == ["late", "b"]


def test_the_attempts_are_kept(queue: QueueFace) -> None:
    queue.offer("a", 1)
    claim(queue).release()
    claim(queue).release(HOUR)
    assert queue.run_now("a")
    assert snapshot(queue, "a").attempts == 2
    delivery = claim(queue)
    assert (delivery.attempt, delivery.redelivered) == (3, True)


def test_a_lease_is_revoked(queue: QueueFace, clock: ManualClock) -> None:
    queue.offer("a", 1)
    delivery = claim(queue)
    assert queue.reschedule("a", HOUR)
    assert attempts_to_settle(delivery) == [False] * 4
    found = snapshot(queue, "a")
    assert (found.state, found.attempts, found.leased_until) == (State.FUTURE, 1, None)
    clock.advance(HOUR)
    assert claim(queue).attempt == 2


def test_a_lease_is_revoked_even_if_the_due_time_stays(queue: QueueFace) -> None:
    queue.offer("a", 1, START)
    delivery = claim(queue)
    assert queue.reschedule("a", START)
    assert not delivery.ack()
    assert claim(queue).ack()


def test_an_offer_of_the_same_at_the_new_time_is_ignored(queue: QueueFace) -> None:
    queue.offer("a", 1, START)
    queue.reschedule("a", START + HOUR)
    assert queue.offer("a", 1, START + HOUR) is OfferOutcome.IGNORED
    assert queue.offer("a", 1, START) is OfferOutcome.UPDATED


def test_the_insertion_order_is_kept(queue: QueueFace) -> None:
    queue.offer_batch([Message("a", 1, DAY), Message("b", 1)])
    assert queue.reschedule("a", START)
    assert keys_of(queue.try_poll_many(2)) == ["a", "b"]


def test_there_must_be_a_message_in_the_queue(queue: QueueFace) -> None:
    assert not queue.reschedule("a", HOUR)
    assert not queue.run_now("a")
    queue.offer("a", 1)
    claim(queue).bury("enough")
    assert not queue.run_now("a")
    assert snapshot(queue, "a").state is State.BURIED
    queue.offer("b", 1)
    claim(queue).ack()
    assert not queue.run_now("b")


def test_only_the_message_of_this_key_and_queue_moves(open_queue: OpenQueue) -> None:
    ours, theirs = open_queue(), open_queue("invoices")
    for queue in (ours, theirs):
        queue.offer_batch([Message("a", 1, DAY), Message("A", 1, DAY)])
    assert ours.run_now("a")
    assert [one.key for one in ours.list(state="due").messages] == ["a"]
    assert theirs.stats().due == 0


def test_a_rescheduled_message_leaves_no_row_in_the_history(open_queue: OpenQueue) -> None:
    queue = open_queue(history=True)
    queue.offer("a", 1)
    claim(queue)
    assert queue.reschedule("a", HOUR)
    assert queue.history() == []


def test_listeners_hear_of_an_update(queue: QueueFace) -> None:
    heard: list[Event] = []
    queue_of_either_face: Any = queue
    queue_of_either_face.events.subscribe(heard.append)
    queue.offer("a", 1)
    assert queue.run_now("a")
    assert not queue.run_now("b")
    assert heard == [Offered("orders", 1, 0, 0), Offered("orders", 0, 1, 0)]


def test_a_lease_that_ends_after_a_reschedule_changes_nothing(
    queue: QueueFace, clock: ManualClock
) -> None:
    queue.offer("a", 1)
    claim(queue)
    assert queue.reschedule("a", DAY)
    clock.advance(DEFAULT_LEASE + MINUTE)
    assert queue.try_poll() is None


BAD: list[tuple[str, object, object, type[Exception]]] = [
    ("key", "", HOUR, ValueError),
    ("key", 1, HOUR, TypeError),
    ("due", "a", None, TypeError),
    ("due", "a", 5, TypeError),
    ("due", "a", START.replace(tzinfo=None), ValueError),
    ("due", "a", timedelta.max, ValueError),
]


@pytest.mark.argument_checks
@pytest.mark.parametrize(("argument", "key", "due", "error"), BAD)
def test_bad_arguments_are_refused(
    queue: QueueFace, argument: str, key: Any, due: Any, error: type[Exception]
) -> None:
    with pytest.raises(error, match=f"^{argument} "):
        queue.reschedule(key, due)


def test_seconds_pass_between_the_old_and_the_new_time(
    queue: QueueFace, clock: ManualClock
) -> None:
    queue.offer("a", 1, MINUTE)
    assert queue.reschedule("a", 2 * MINUTE)
    clock.advance(MINUTE + 59 * SECOND)
    assert queue.try_poll() is None
    clock.advance(SECOND)
    assert claim(queue).key == "a"


def test_a_message_is_not_moved_to_where_it_has_expired(
    queue: QueueFace, clock: ManualClock
) -> None:
    queue.offer("a", 1, MINUTE, expires=HOUR)
    with pytest.raises(ValueError, match="due must be before the message expires"):
        queue.reschedule("a", HOUR)
    assert snapshot(queue, "a").due_at == START + MINUTE
    assert queue.reschedule("a", HOUR - SECOND)
    clock.advance(HOUR)
    with pytest.raises(ValueError, match="offer it again"):
        queue.run_now("a")
