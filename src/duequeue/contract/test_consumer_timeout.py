"""Consumers with a timeout: what becomes of a message whose handler runs for too long."""

import logging
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from duequeue import Backoff, Handled, ManualClock, Message
from duequeue.contract.faces import QueueFace
from duequeue.contract.fixtures import Consume
from duequeue.contract.phrases import HOUR, MILLISECOND, SECOND
from duequeue.contract.stage import Stage, until, until_gone
from duequeue.message import State

TIMEOUT = 20 * MILLISECOND
TIME_TO_ACK = SECOND  # long enough for a handler to ack, however busy the machine is
LATER = Backoff(first=HOUR, longest=HOUR)


def is_in(queue: QueueFace, key: str, state: State, attempts: int = 1) -> bool:
    found = queue.read(key)
    return found is not None and (found.state, found.attempts) == (state, attempts)


def test_a_message_whose_handler_takes_too_long_is_released_with_backoff(
    queue: QueueFace, stage: Stage, consume: Consume, clock: ManualClock
) -> None:
    queue.offer("slow", 1)
    with consume(queue, timeout=TIMEOUT, backoff=LATER):
        scene = stage.next()
        until(partial(is_in, queue, "slow", State.FUTURE))
        next_due_at = queue.stats().next_due_at
        assert next_due_at is not None
        assert HOUR / 2 <= next_due_at - clock.now() <= HOUR
        if stage.on_threads:
            assert scene.delivery.lost
            scene.end("too late")
        else:
            assert scene.cancelled
    assert is_in(queue, "slow", State.FUTURE)


def test_what_a_late_handler_does_changes_nothing(
    queue: QueueFace, stage: Stage, consume: Consume
) -> None:
    queue.offer("slow", 1)
    consume(queue, timeout=TIMEOUT, backoff=LATER)
    scene = stage.next()
    until(partial(is_in, queue, "slow", State.FUTURE))
    assert not scene.delivery.ack()
    assert not scene.delivery.bury("late")
    assert is_in(queue, "slow", State.FUTURE)


def test_the_reason_of_a_burial_names_the_timeout(
    queue: QueueFace, stage: Stage, consume: Consume
) -> None:
    queue.offer("slow", 1)
    consume(queue, timeout=TIMEOUT, max_attempts=1)
    stage.next()
    until(partial(is_in, queue, "slow", State.BURIED))
    (message,) = queue.buried(1)
    assert message.reason.startswith("max_attempts: failed 1 times")
    assert "TimeoutError: the handler did not end within its timeout of 20 ms" in message.reason


def test_a_handler_that_is_in_time_is_not_disturbed(
    queue: QueueFace, stage: Stage, consume: Consume
) -> None:
    queue.offer_batch([Message(str(n), n) for n in range(20)])
    consume(queue, timeout=HOUR, concurrency=2)
    for _ in range(20):
        scene = stage.next()
        scene.end()
        until_gone(queue, scene.delivery.key)
    assert queue.stats().buried == 0


def test_a_handler_that_settled_its_message_leaves_nothing_to_settle(
    queue: QueueFace, stage: Stage, consume: Consume
) -> None:
    queue.offer_batch([Message("settled", 1, -SECOND), Message("next", 1)])
    consume(queue, timeout=TIME_TO_ACK, concurrency=1, backoff=LATER)
    assert stage.next().delivery.ack()
    assert stage.next().delivery.key == "next"
    assert not queue.contains("settled")


def test_the_place_of_a_late_handler_is_filled(
    queue: QueueFace, stage: Stage, consume: Consume
) -> None:
    queue.offer("slow", 1, -SECOND)
    consume(queue, timeout=TIMEOUT, concurrency=1, backoff=LATER)
    slow = stage.next()
    queue.offer("next", 1)
    following = stage.next()
    assert (slow.delivery.key, following.delivery.key) == ("slow", "next")
    following.end_unless_cancelled()  # this one may be late too
    until(lambda: not queue.contains("next") or is_in(queue, "next", State.FUTURE))


def test_only_so_many_threads_are_replaced(
    queue: QueueFace, stage: Stage, consume: Consume, caplog: pytest.LogCaptureFixture
) -> None:
    if not stage.on_threads:
        pytest.skip("a task ends when it is cancelled")
    queue.offer_batch([Message(key, 1, -SECOND) for key in ("first", "second")])
    with (
        caplog.at_level(logging.ERROR, "duequeue.consumer"),
        consume(queue, timeout=TIMEOUT, concurrency=1, backoff=LATER),
    ):
        late = [stage.next(), stage.next()]
        until(partial(is_in, queue, "second", State.FUTURE))
        queue.offer("third", 1)
        assert "too many handlers that timed out still run" in caplog.text
        until(partial(is_in, queue, "third", State.DUE, attempts=0))
        late[1].end()  # its thread was not replaced, so it goes on
        third = stage.next()
        assert third.delivery.key == "third"
        third.end()
        until(lambda: not queue.contains("third") or is_in(queue, "third", State.FUTURE))


def test_a_lost_thread_that_comes_back_takes_the_place_of_one_that_hangs(
    queue: QueueFace, stage: Stage, consume: Consume
) -> None:
    if not stage.on_threads:
        pytest.skip("a task ends when it is cancelled")
    queue.offer_batch([Message(key, 1, -SECOND) for key in ("first", "second")])
    with consume(queue, timeout=TIMEOUT, concurrency=1, backoff=LATER):
        late = [stage.next(), stage.next()]
        until(partial(is_in, queue, "second", State.FUTURE))
        late[0].end()  # the other one hangs for ever
        queue.offer("third", 1)
        assert stage.next().delivery.key == "third"


def test_a_stop_does_not_wait_for_late_handlers(
    queue: QueueFace, stage: Stage, consume: Consume
) -> None:
    queue.offer("slow", 1)
    consumer = consume(queue, timeout=TIMEOUT, backoff=LATER)
    stage.next()
    until(partial(is_in, queue, "slow", State.FUTURE))
    consumer.stop(grace=HOUR)
    assert is_in(queue, "slow", State.FUTURE)


def test_a_stop_ends_with_the_timeout_of_the_last_handler(
    queue: QueueFace, stage: Stage, consume: Consume, caplog: pytest.LogCaptureFixture
) -> None:
    queue.offer("slow", 1)
    consumer = consume(queue, timeout=10 * TIMEOUT, backoff=LATER)
    stage.next()
    with caplog.at_level(logging.ERROR, "duequeue.consumer"):
        consumer.stop(grace=HOUR)
    assert is_in(queue, "slow", State.FUTURE)
    assert "too many handlers" not in caplog.text, "no thread is needed any more"


def test_a_late_handler_is_reported_once(queue: QueueFace, stage: Stage, consume: Consume) -> None:
    handled: list[Handled] = []
    queue_of_either_face: Any = queue
    queue_of_either_face.events.subscribe(
        lambda event: handled.append(event) if isinstance(event, Handled) else None
    )
    queue.offer("slow", 1)
    with consume(queue, timeout=TIMEOUT, backoff=LATER):
        scene = stage.next()
        until(partial(is_in, queue, "slow", State.FUTURE))
        if stage.on_threads:
            scene.end()
    (event,) = handled
    assert (event.key, event.outcome) == ("slow", "released")
    assert isinstance(event.error, TimeoutError)
    assert event.duration >= TIMEOUT


@pytest.mark.argument_checks
@pytest.mark.parametrize("timeout", [timedelta(0), -SECOND, timedelta(microseconds=1)])
def test_a_timeout_must_be_positive(queue: QueueFace, consume: Consume, timeout: timedelta) -> None:
    with pytest.raises(ValueError, match="timeout"):
        consume(queue, timeout=timeout)


@pytest.mark.argument_checks
def test_a_timeout_must_be_a_timedelta(queue: QueueFace, consume: Consume) -> None:
    with pytest.raises(TypeError, match="timeout"):
        consume(queue, timeout=30)
