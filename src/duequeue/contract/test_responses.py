"""Responses: what `ack(response=…)` stores, who may read it, and what makes it void."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple

import pytest

from duequeue import ManualClock, Message, NotAnswered, OfferOutcome, PayloadTooLarge, Response
from duequeue.contract.faces import QueueFace
from duequeue.contract.fixtures import START, OpenQueue
from duequeue.contract.phrases import (
    DAY,
    DEFAULT_LEASE,
    HOUR,
    MILLISECOND,
    MINUTE,
    SECOND,
    claim,
)
from duequeue.errors import UndecodablePayload


def answer(queue: QueueFace, key: str, response: object, **options: Any) -> None:
    """Offer a message and answer it."""
    queue.offer(key, 1)
    assert claim(queue).ack(response=response, **options)


def response_now(queue: QueueFace, key: str) -> Response | None:
    return queue.response(key, 0)


@pytest.mark.parametrize("value", [None, False, 0, "", "ü€", [1, {"a": None}], 1.5, {"total": 4}])
def test_a_response_is_what_the_consumer_answered(
    queue: QueueFace, clock: ManualClock, value: object
) -> None:
    queue.offer("a", {"n": 1})
    clock.advance(SECOND)
    assert claim(queue).ack(response=value)
    assert response_now(queue, "a") == Response(value, START + SECOND)
    assert not queue.contains("a")
    assert queue.stats().total == 0


def test_several_may_read_a_response(queue: QueueFace, open_queue: OpenQueue) -> None:
    answer(queue, "a", 1)
    answer(queue, "b", 2)
    other = open_queue()
    for each in (queue, other, queue):
        assert [response_now(each, key) for key in "ab"] == [Response(1, START), Response(2, START)]


def test_queues_do_not_share_responses(queue: QueueFace, open_queue: OpenQueue) -> None:
    answer(queue, "a", 1)
    assert response_now(open_queue("other"), "a") is None
    assert response_now(open_queue(codec=str), "a") is None


@pytest.mark.parametrize("key", ["A", "a ", "á", "%", "_"])
def test_keys_match_exactly(queue: QueueFace, key: str) -> None:
    answer(queue, "a", 1)
    assert response_now(queue, key) is None
    answer(queue, key, 2)
    assert response_now(queue, key) == Response(2, START)
    assert response_now(queue, "a") == Response(1, START)


def test_there_is_no_response_to_what_nobody_has_answered(queue: QueueFace) -> None:
    assert response_now(queue, "unknown") is None
    queue.offer("a", 1)
    assert response_now(queue, "a") is None
    delivery = claim(queue)
    assert response_now(queue, "a") is None
    assert delivery.ack()
    assert response_now(queue, "a") is None


def test_acks_of_many_answer_nothing(queue: QueueFace) -> None:
    queue.offer_batch([Message(key, 1) for key in "ab"])
    assert queue.ack_many(queue.try_poll_many(2)) == 2
    assert [response_now(queue, key) for key in "ab"] == [None, None]


def poll_again(queue: QueueFace, clock: ManualClock) -> None:
    clock.advance(DEFAULT_LEASE)
    claim(queue)


# Since the delivery, something has ended the lease.
LOSSES: dict[str, Callable[[QueueFace, ManualClock], object]] = {
    "updated": lambda queue, _: queue.offer("a", 2),
    "dropped": lambda queue, _: queue.drop("a"),
    "rescheduled": lambda queue, _: queue.run_now("a"),
    "polled by another": poll_again,
}


@pytest.mark.parametrize("lose", LOSSES.values(), ids=LOSSES)
def test_who_has_lost_the_lease_answers_nothing(
    queue: QueueFace, clock: ManualClock, lose: Callable[[QueueFace, ManualClock], object]
) -> None:
    queue.offer("a", 1)
    delivery = claim(queue)
    lose(queue, clock)
    assert not delivery.ack(response="too late")
    queue.drop("a")
    queue.offer("a", 1)
    assert claim(queue).ack()
    assert response_now(queue, "a") is None


def test_a_message_is_answered_once(queue: QueueFace) -> None:
    queue.offer("a", 1)
    delivery = claim(queue)
    assert delivery.ack(response="first")
    assert not delivery.ack(response="second")
    assert not delivery.bury("third")
    assert response_now(queue, "a") == Response("first", START)


def test_a_lease_that_has_ended_may_still_answer(queue: QueueFace, clock: ManualClock) -> None:
    queue.offer("a", 1)
    delivery = claim(queue)
    clock.advance(DEFAULT_LEASE)
    assert delivery.ack(response=1)
    assert response_now(queue, "a") == Response(1, START + DEFAULT_LEASE)


def test_a_new_message_forgets_the_response(queue: QueueFace) -> None:
    answer(queue, "a", "old")
    assert queue.offer("a", 1) is OfferOutcome.CREATED
    assert response_now(queue, "a") is None
    assert claim(queue).ack(response="new")
    assert response_now(queue, "a") == Response("new", START)


def expire(queue: QueueFace, clock: ManualClock) -> None:
    queue.offer("a", 1, expires=MINUTE)
    clock.advance(MINUTE)
    assert queue.try_poll() is None


# How a message can leave the queue without an answer.
WAYS_OUT: dict[str, Callable[[QueueFace, ManualClock], object]] = {
    "ack": lambda queue, _: claim(queue).ack(),
    "ack_many": lambda queue, _: queue.ack_many(queue.try_poll_many(1)),
    "ack after a release": lambda queue, _: (claim(queue).release(), claim(queue).ack()),
    "expiry": expire,
    "drop_all": lambda queue, _: queue.drop_all("orders"),
    "update, then ack": lambda queue, _: (queue.offer("a", 2), claim(queue).ack()),
}


@pytest.mark.parametrize("leave", WAYS_OUT.values(), ids=WAYS_OUT)
@pytest.mark.parametrize("history", [False, True])
def test_an_old_response_does_not_come_back(
    open_queue: OpenQueue,
    clock: ManualClock,
    leave: Callable[[QueueFace, ManualClock], object],
    history: bool,
) -> None:
    queue = open_queue(history=history)
    answer(queue, "a", "old", keep=DAY)
    queue.offer("a", 1)
    leave(queue, clock)
    assert not queue.contains("a")
    assert response_now(queue, "a") is None


def test_many_expired_messages_leave_no_old_responses(queue: QueueFace, clock: ManualClock) -> None:
    keys = [f"order-{number}" for number in range(5)]
    for key in keys:
        answer(queue, key, "old", keep=DAY)
    queue.offer_batch([Message(key, 1, expires=MINUTE) for key in keys])
    clock.advance(MINUTE)
    assert queue.try_poll() is None
    assert [response_now(queue, key) for key in keys] == [None] * len(keys)


def test_an_ignored_offer_changes_nothing(queue: QueueFace, clock: ManualClock) -> None:
    queue.offer("a", 1, START)
    delivery = claim(queue)
    clock.advance(SECOND)
    assert queue.offer("a", 1, START) is OfferOutcome.IGNORED
    assert delivery.ack(response=1)
    assert response_now(queue, "a") == Response(1, START + SECOND)


def test_a_batch_forgets_the_responses_of_its_keys_alone(queue: QueueFace) -> None:
    for key in "abc":
        answer(queue, key, key)
    queue.offer_batch([Message("a", 1), Message("c", 1), Message("a", 2)])
    assert queue.ack_many(queue.try_poll_many(2)) == 2
    found = [response_now(queue, key) for key in "abc"]
    assert found == [None, Response("b", START), None]


def test_a_revival_forgets_that_the_message_was_buried(queue: QueueFace) -> None:
    queue.offer("a", 1)
    assert claim(queue).bury("bad")
    assert queue.revive("a")
    assert response_now(queue, "a") is None
    assert claim(queue).ack()
    assert response_now(queue, "a") is None


class Kept(NamedTuple):
    """What was asked for, and what that means."""

    options: dict[str, timedelta]
    keep: timedelta


@pytest.mark.parametrize(
    "kept",
    [Kept({}, HOUR), Kept({"keep": MILLISECOND}, MILLISECOND), Kept({"keep": 7 * DAY}, 7 * DAY)],
    ids=["default", "shortest", "longest"],
)
def test_a_response_is_kept_for_some_time(queue: QueueFace, clock: ManualClock, kept: Kept) -> None:
    answer(queue, "a", 1, **kept.options)
    clock.advance(kept.keep - MILLISECOND)
    assert response_now(queue, "a") == Response(1, START)
    clock.advance(MILLISECOND)
    assert response_now(queue, "a") is None
    assert not queue.forget_response("a")


def test_a_later_response_is_kept_for_its_own_time(queue: QueueFace, clock: ManualClock) -> None:
    answer(queue, "a", 1, keep=HOUR)
    answer(queue, "a", 2, keep=DAY)
    clock.advance(2 * HOUR)
    answer(queue, "b", 3)  # which may delete what has expired
    assert response_now(queue, "a") == Response(2, START)


def test_a_response_can_be_forgotten(queue: QueueFace) -> None:
    answer(queue, "a", 1)
    answer(queue, "b", 2)
    assert queue.forget_response("a")
    assert not queue.forget_response("a")
    assert not queue.forget_response("unknown")
    assert response_now(queue, "a") is None
    assert response_now(queue, "b") == Response(2, START)


def test_a_pending_message_has_no_response_to_forget(queue: QueueFace) -> None:
    answer(queue, "a", "old")
    queue.offer("a", 1)
    assert not queue.forget_response("a")


@pytest.mark.parametrize("history", [False, True])
def test_what_is_buried_is_not_answered(
    open_queue: OpenQueue,
    clock: ManualClock,
    history: bool,
) -> None:
    queue = open_queue(history=history)
    queue.offer("a", 1)
    assert claim(queue).bury("unknown customer")
    for _ in range(2):
        with pytest.raises(NotAnswered, match="unknown customer") as raised:
            response_now(queue, "a")
        assert raised.value.reason == "unknown customer"
    clock.advance(HOUR)
    assert response_now(queue, "a") is None


def test_what_a_poll_buries_is_not_answered(open_queue: OpenQueue) -> None:
    queue = open_queue(max_attempts=1)
    queue.offer("a", 1)
    claim(queue).release()
    assert queue.try_poll() is None
    with pytest.raises(NotAnswered, match="max_attempts"):
        response_now(queue, "a")


@pytest.mark.parametrize("history", [False, True])
def test_what_is_dropped_is_not_answered(
    open_queue: OpenQueue,
    clock: ManualClock,
    history: bool,
) -> None:
    queue = open_queue(history=history)
    queue.offer("a", 1)
    queue.offer("b", 1)
    assert queue.drop("a")
    with pytest.raises(NotAnswered) as raised:
        response_now(queue, "a")
    assert raised.value.reason == "dropped"
    assert response_now(queue, "b") is None
    clock.advance(HOUR)
    assert response_now(queue, "a") is None


def test_a_drop_of_nothing_changes_no_response(queue: QueueFace) -> None:
    answer(queue, "a", 1)
    assert not queue.drop("a")
    assert response_now(queue, "a") == Response(1, START)


def test_a_refusal_takes_the_place_of_a_response_and_the_other_way_round(queue: QueueFace) -> None:
    answer(queue, "a", 1)
    queue.offer("a", 2)
    claim(queue).bury("bad")
    with pytest.raises(NotAnswered):
        response_now(queue, "a")
    answer(queue, "a", 3)
    assert response_now(queue, "a") == Response(3, START)
    queue.offer("a", 4)
    queue.drop("a")
    with pytest.raises(NotAnswered):
        response_now(queue, "a")


def test_dropping_all_forgets_every_response(queue: QueueFace, open_queue: OpenQueue) -> None:
    other = open_queue("other")
    answer(queue, "a", 1)
    answer(other, "a", 2)
    queue.offer("b", 1)
    assert queue.drop_all("orders") == 1
    assert [response_now(queue, key) for key in "ab"] == [None, None]
    assert response_now(other, "a") == Response(2, START)


def test_an_answer_is_in_the_history_like_any_ack(open_queue: OpenQueue) -> None:
    queue = open_queue(history=True)
    answer(queue, "a", 1)
    assert [(each.key, each.outcome.value, each.attempts) for each in queue.history()] == [
        ("a", "acked", 1)
    ]


def test_responses_that_have_expired_do_not_pile_up(queue: QueueFace, clock: ManualClock) -> None:
    # Expired ones are deleted every hundred, so this test meets them at least once.
    for round_number in range(3):
        keys = [f"{round_number}-{number}" for number in range(60)]
        queue.offer_batch([Message(key, 1) for key in keys])
        for delivery in queue.try_poll_many(100):
            assert delivery.ack(response=delivery.key, keep=MINUTE)
        assert [response_now(queue, key) for key in keys] == [
            Response(key, clock.now()) for key in keys
        ]
        clock.advance(MINUTE)
        assert [response_now(queue, key) for key in keys] == [None] * len(keys)


class Total(NamedTuple):
    amount: int


def test_a_queue_may_have_a_type_of_responses(open_queue: OpenQueue) -> None:
    queue = open_queue(response_type=Total)
    answer(queue, "a", Total(3))
    assert response_now(queue, "a") == Response(Total(3), START)
    plain = open_queue()
    assert response_now(plain, "a") == Response([3], START)
    answer(plain, "b", "three")
    with pytest.raises(UndecodablePayload, match="'b'"):
        response_now(queue, "b")


def test_a_codec_may_be_given_for_responses(open_queue: OpenQueue) -> None:
    queue = open_queue(response_type=bytes)
    answer(queue, "a", b"\0\xff")
    assert response_now(queue, "a") == Response(b"\0\xff", START)


def test_a_large_response(queue: QueueFace) -> None:
    large = "x" * (8 * 1024 * 1024 - 2)
    queue.offer("a", 1)
    delivery = claim(queue)
    with pytest.raises(PayloadTooLarge, match="response of 'a'"):
        delivery.ack(response=large + "x")
    assert delivery.ack(response=large)
    found = response_now(queue, "a")
    assert found is not None
    assert found.value == large


@pytest.mark.argument_checks
@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"response": {1}.__iter__()}, TypeError, "response to 'a' cannot be encoded"),
        ({"response": float("nan")}, ValueError, "response to 'a' cannot be encoded"),
        ({"response": 1, "keep": timedelta(0)}, ValueError, "keep"),
        ({"response": 1, "keep": -SECOND}, ValueError, "keep"),
        ({"response": 1, "keep": 7 * DAY + MILLISECOND}, ValueError, "keep must be at most 7 days"),
        ({"response": 1, "keep": 60}, TypeError, "keep"),
        ({"keep": HOUR}, ValueError, "keep must come with a response"),
    ],
)
def test_a_bad_answer_settles_nothing(
    queue: QueueFace, options: dict[str, Any], error: type[Exception], words: str
) -> None:
    queue.offer("a", 1)
    delivery = claim(queue)
    with pytest.raises(error, match=words):
        delivery.ack(**options)
    assert queue.contains("a")
    assert delivery.ack(response=1)


@pytest.mark.argument_checks
def test_bad_arguments_of_a_look(queue: QueueFace) -> None:
    bad: Any
    for bad in ("", "x" * 201, "a\0b"):
        with pytest.raises(ValueError, match="key"):
            queue.response(bad, 0)
        with pytest.raises(ValueError, match="key"):
            queue.forget_response(bad)
    for bad in (1, None, b"a"):
        with pytest.raises(TypeError, match="key"):
            queue.response(bad, 0)
    with pytest.raises(ValueError, match="timeout"):
        queue.response("a", -1)
    bad = "1"
    with pytest.raises(TypeError, match="timeout"):
        queue.response("a", bad)


@pytest.mark.argument_checks
def test_the_type_of_responses_is_checked_first(open_queue: OpenQueue) -> None:
    with pytest.raises(TypeError, match="response_type"):
        open_queue(response_type=object())
    with pytest.raises(TypeError, match="response_type"):
        open_queue(response_type=int)
