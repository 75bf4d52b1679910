"""Consumers that answer with what their handlers return."""

import logging
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from duequeue import (
    Backoff,
    Bury,
    Handled,
    InvalidType,
    ManualClock,
    Message,
    NotAnswered,
    Response,
    Retry,
    State,
)
from duequeue.contract.faces import QueueFace
from duequeue.contract.fixtures import START, Consume, OpenQueue
from duequeue.contract.phrases import DAY, HOUR, MILLISECOND, MINUTE, PATIENCE, snapshot
from duequeue.contract.stage import Stage, until, until_gone
from duequeue.contract.test_drain import drained

ONCE_A_MINUTE = Backoff(first=MINUTE, longest=MINUTE)


def is_put_off(queue: QueueFace, key: str) -> bool:
    return snapshot(queue, key).state is State.FUTURE


@pytest.mark.parametrize("value", [None, 0, {"total": 4}, "text", [1, 2]])
def test_what_the_handler_returns_is_the_response(
    queue: QueueFace, consume: Consume, value: object
) -> None:
    queue.offer("a", 1)
    with consume(queue, lambda _: value, respond=True):
        assert queue.response("a", PATIENCE) == Response(value, START)


def test_many_messages_are_answered_each_with_its_own(queue: QueueFace, consume: Consume) -> None:
    keys = [f"order-{number}" for number in range(50)]
    queue.offer_batch([Message(key, key) for key in keys])
    with consume(queue, lambda delivery: delivery.payload.upper(), respond=True):
        found = [queue.response(key, PATIENCE) for key in keys]
    assert found == [Response(key.upper(), START) for key in keys]


def test_without_respond_nothing_is_answered(queue: QueueFace, consume: Consume) -> None:
    queue.offer("a", 1)
    with consume(queue, lambda _: "ignored"):
        until_gone(queue, "a")
    assert queue.response("a", 0) is None


def test_a_retried_message_is_answered_once_it_is_handled(
    queue: QueueFace, stage: Stage, consume: Consume, clock: ManualClock
) -> None:
    queue.offer("a", 1)
    with consume(queue, respond=True, backoff=ONCE_A_MINUTE):
        stage.next().end(ValueError("not yet"))
        until(partial(is_put_off, queue, "a"))
        assert queue.response("a", 0) is None
        clock.advance(MINUTE)
        stage.next().end(Retry(MINUTE))
        until(partial(is_put_off, queue, "a"))
        clock.advance(MINUTE)
        stage.next().end("done")
        assert queue.response("a", PATIENCE) == Response("done", START + 2 * MINUTE)


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [(Bury("unknown customer"), "unknown customer"), (ValueError("broken"), "broken")],
)
def test_a_buried_message_is_refused_for_as_long_as_responses_are_kept(
    queue: QueueFace,
    stage: Stage,
    consume: Consume,
    clock: ManualClock,
    outcome: Exception,
    reason: str,
) -> None:
    queue.offer("a", 1)
    with consume(queue, respond=True, keep=DAY, max_attempts=1):
        stage.next().end(outcome)
        with pytest.raises(NotAnswered, match=reason):
            queue.response("a", PATIENCE)
    clock.advance(DAY - MILLISECOND)
    with pytest.raises(NotAnswered, match=reason):
        queue.response("a", 0)
    clock.advance(MILLISECOND)
    assert queue.response("a", 0) is None


@pytest.mark.parametrize(("options", "kept"), [({}, HOUR), ({"keep": MINUTE}, MINUTE)])
def test_how_long_a_consumer_has_its_responses_kept(
    queue: QueueFace,
    consume: Consume,
    clock: ManualClock,
    options: dict[str, timedelta],
    kept: timedelta,
) -> None:
    queue.offer("a", 1)
    with consume(queue, lambda _: 1, respond=True, **options):
        assert queue.response("a", PATIENCE) == Response(1, START)
    clock.advance(kept - MILLISECOND)
    assert queue.response("a", 0) == Response(1, START)
    clock.advance(MILLISECOND)
    assert queue.response("a", 0) is None


def test_a_handler_that_answers_itself_is_not_answered_for(
    queue: QueueFace, stage: Stage, consume: Consume
) -> None:
    queue.offer("a", 1)
    with consume(queue, respond=True, keep=MINUTE):
        scene = stage.next()
        assert scene.delivery.ack(response="mine")
        scene.end("returned")
        assert queue.response("a", PATIENCE) == Response("mine", START)


def test_a_handler_may_answer_without_respond(
    queue: QueueFace, stage: Stage, consume: Consume
) -> None:
    queue.offer("a", 1)
    with consume(queue):
        scene = stage.next()
        assert scene.delivery.ack(response="mine")
        scene.end()
    assert queue.response("a", 0) == Response("mine", START)


def test_what_cannot_be_encoded_counts_as_a_failure(
    queue: QueueFace, consume: Consume, caplog: pytest.LogCaptureFixture
) -> None:
    events: list[Any] = []
    queue_with_events: Any = queue
    queue_with_events.events.subscribe(events.append)
    queue.offer("a", 1)
    with (
        caplog.at_level(logging.ERROR),
        consume(queue, lambda _: object(), respond=True, max_attempts=1),
        pytest.raises(NotAnswered, match="response to 'a' cannot be encoded"),
    ):
        queue.response("a", PATIENCE)
    assert "response to 'a' cannot be encoded" in caplog.text
    (handled,) = [event for event in events if isinstance(event, Handled)]
    assert (handled.outcome, type(handled.error)) == ("buried", InvalidType)


def test_an_answer_is_reported_as_an_ack(queue: QueueFace, consume: Consume) -> None:
    events: list[Any] = []
    queue_with_events: Any = queue
    queue_with_events.events.subscribe(events.append)
    queue.offer("a", 1)
    with consume(queue, lambda _: 1, respond=True):
        assert queue.response("a", PATIENCE) is not None
    assert [event.outcome for event in events if isinstance(event, Handled)] == ["acked"]


def test_large_answers_are_settled_together(queue: QueueFace, consume: Consume) -> None:
    size = 3 * 1024 * 1024
    queue.offer_batch([Message(key, key) for key in "abcde"])
    with consume(queue, lambda delivery: delivery.key * size, respond=True):
        for key in "abcde":
            found = queue.response(key, PATIENCE)
            assert found is not None
            assert found.value == key * size


@pytest.mark.argument_checks
@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"respond": 1}, InvalidType, "respond"),
        ({"respond": True, "keep": timedelta(0)}, ValueError, "keep"),
        ({"respond": True, "keep": 8 * DAY}, ValueError, "keep must be at most 7 days"),
        ({"respond": True, "keep": 60}, InvalidType, "keep"),
    ],
)
def test_bad_options(
    queue: QueueFace,
    consume: Consume,
    options: dict[str, Any],
    error: type[Exception],
    words: str,
) -> None:
    with pytest.raises(error, match=words):
        consume(queue, lambda _: 1, **options)


def test_drain_answers_as_a_consumer_does(queue: QueueFace, clock: ManualClock) -> None:
    queue.offer("a", 1)
    assert drained(queue, lambda _: "handled", respond=True, keep=MINUTE) == 1
    assert queue.response("a", 0) == Response("handled", START)
    clock.advance(MINUTE)
    assert queue.response("a", 0) is None
    queue.offer("b", 1)
    unencodable: dict[str, Any] = {"respond": True, "max_attempts": 1, "raise_errors": False}
    assert drained(queue, lambda _: object(), **unencodable) == 1
    with pytest.raises(NotAnswered, match="cannot be encoded"):
        queue.response("b", 0)
    queue.offer("c", 1)
    assert drained(queue, lambda _: "ignored") == 1
    assert queue.response("c", 0) is None


def test_a_typed_queue_of_responses(open_queue: OpenQueue, consume: Consume) -> None:
    queue = open_queue(response_type=str)
    queue.offer("a", 1)
    with consume(queue, lambda _: "text", respond=True):
        assert queue.response("a", PATIENCE) == Response("text", START)
