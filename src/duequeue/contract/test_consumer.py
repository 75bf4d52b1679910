"""Consumers: what becomes of a message after its handler returned, raised or settled it."""

import asyncio
import logging
import re
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from duequeue import Backoff, Bury, ManualClock, Message, Retry
from duequeue.contract.faces import QueueFace
from duequeue.contract.fixtures import Consume, OpenQueue
from duequeue.contract.logs import records_of
from duequeue.contract.phrases import (
    DEFAULT_LEASE,
    HOUR,
    MINUTE,
    SECOND,
    PickyCodec,
    claim,
    keys_of,
    snapshot,
)
from duequeue.contract.stage import Stage, until, until_gone
from duequeue.message import State


def is_in(queue: QueueFace, key: str, state: State, attempts: int = 1) -> bool:
    found = queue.read(key)
    return found is not None and (found.state, found.attempts) == (state, attempts)


def test_what_returns_is_acked(queue: QueueFace, stage: Stage, consume: Consume) -> None:
    queue.offer("a", {"total": 40}, headers={"trace": "1"})
    with consume(queue):
        scene = stage.next()
        delivery = scene.delivery
        assert (delivery.key, delivery.payload, delivery.attempt) == ("a", {"total": 40}, 1)
        assert (delivery.headers, delivery.queue_name) == ({"trace": "1"}, "orders")
        assert not delivery.lost
        scene.end("whatever is returned")
        until_gone(queue, "a")
    assert queue.stats().total == 0
    assert stage.is_empty()


def test_messages_come_when_they_are_due(
    queue: QueueFace, stage: Stage, consume: Consume, clock: ManualClock
) -> None:
    queue.offer_batch([Message("later", 1, HOUR), Message("sooner", 1, MINUTE)])
    consume(queue)
    queue.offer("now", 1)
    for key, wait in (("now", 0 * SECOND), ("sooner", MINUTE), ("later", HOUR)):
        clock.advance(wait)
        scene = stage.next()
        assert scene.delivery.key == key
        scene.end()
        until_gone(queue, key)


def test_one_at_a_time_they_come_in_due_order(
    queue: QueueFace, stage: Stage, consume: Consume
) -> None:
    queue.offer_batch([Message(str(n), n, -n * SECOND) for n in range(10)])
    with consume(queue, concurrency=1, batch=3):
        for n in reversed(range(10)):
            scene = stage.next()
            assert scene.delivery.key == str(n)
            assert stage.is_empty()
            scene.end()
    assert queue.stats().total == 0


def test_as_many_run_at_once_as_asked_for(queue: QueueFace, stage: Stage, consume: Consume) -> None:
    queue.offer_batch([Message(str(n), n) for n in range(10)])
    consume(queue, concurrency=4)
    scenes = [stage.next() for _ in range(4)]
    until(lambda: queue.stats().leased == 10)
    assert stage.is_empty()
    scenes[2].end()
    assert stage.next().delivery.key == "4"


@pytest.mark.parametrize("raised", [ValueError("boom"), Retry(), asyncio.CancelledError()])
def test_what_fails_is_released_after_a_growing_delay(
    queue: QueueFace, stage: Stage, consume: Consume, clock: ManualClock, raised: BaseException
) -> None:
    queue.offer("a", 1)
    consume(queue, backoff=Backoff(first=10 * SECOND, longest=30 * SECOND, factor=2))
    for attempt, longest in enumerate([10, 20, 30, 30], 1):
        scene = stage.next()
        assert (scene.delivery.attempt, scene.delivery.redelivered) == (attempt, attempt > 1)
        failed_at = clock.now()
        scene.end(raised)
        until(partial(is_in, queue, "a", State.FUTURE, attempt))
        next_due_at = queue.stats().next_due_at
        assert next_due_at is not None
        delay = next_due_at - failed_at
        assert longest * SECOND / 2 <= delay <= longest * SECOND
        clock.set(next_due_at)


def returned(outcome: BaseException) -> object:
    return outcome


def raised(outcome: BaseException) -> object:
    raise outcome


BOTH_WAYS = pytest.mark.parametrize("give", [returned, raised])


@BOTH_WAYS
def test_a_handler_asks_for_a_retry(
    queue: QueueFace, consume: Consume, clock: ManualClock, give: Callable[[Any], object]
) -> None:
    queue.offer("a", 1)
    consumer = consume(queue, lambda _: give(Retry(HOUR)))
    until(partial(is_in, queue, "a", State.FUTURE))
    consumer.stop()
    assert queue.stats().next_due_at == clock.now() + HOUR
    clock.advance(HOUR)
    assert claim(queue).attempt == 2


@BOTH_WAYS
def test_a_retry_may_be_wanted_at_once(
    queue: QueueFace, consume: Consume, give: Callable[[Any], object]
) -> None:
    seen: list[int] = []

    def handle(delivery: Any) -> object:
        seen.append(delivery.attempt)
        return give(Retry(timedelta(0))) if delivery.attempt < 3 else None

    queue.offer("a", 1)
    consume(queue, handle)
    until_gone(queue, "a")
    assert seen == [1, 2, 3]


@BOTH_WAYS
def test_a_handler_asks_for_a_burial(
    queue: QueueFace, consume: Consume, give: Callable[[Any], object]
) -> None:
    queue.offer("a", 1)
    consume(queue, lambda _: give(Bury("a negative total")))
    until(partial(is_in, queue, "a", State.BURIED))
    (message,) = queue.buried(10)
    assert (message.key, message.attempts, message.reason) == ("a", 1, "a negative total")


def test_a_handler_settles_by_itself(
    queue: QueueFace, stage: Stage, consume: Consume, clock: ManualClock
) -> None:
    queue.offer_batch([Message(key, 1) for key in ("ack", "bury", "release")])
    with consume(queue, concurrency=3):
        scenes = {scene.delivery.key: scene for scene in (stage.next() for _ in range(3))}
        assert scenes["ack"].delivery.ack()
        assert scenes["bury"].delivery.bury("enough")
        assert scenes["release"].delivery.release(HOUR)
        scenes["ack"].end(ValueError("after the ack"))
        scenes["bury"].end()
        scenes["release"].end(Bury("after the release"))
    assert keys_of(queue.buried(10)) == ["bury"]
    assert (queue.stats().total, queue.stats().next_due_at) == (1, clock.now() + HOUR)


BAD_SETTLEMENTS: dict[str, Callable[[Any], object]] = {
    "release with text": lambda delivery: delivery.release("tomorrow"),
    "release into the past": lambda delivery: delivery.release(-SECOND),
    "bury without a reason": lambda delivery: delivery.bury(None),
}


@pytest.mark.parametrize("settle", BAD_SETTLEMENTS.values(), ids=BAD_SETTLEMENTS)
def test_a_handler_that_settles_with_a_bad_argument_has_settled_nothing(
    queue: QueueFace, stage: Stage, consume: Consume, settle: Callable[[Any], object]
) -> None:
    queue.offer("a", 1)
    with consume(queue):
        scene = stage.next()
        with pytest.raises((TypeError, ValueError)) as refusal:
            settle(scene.delivery)
        scene.end(refusal.value)
    assert is_in(queue, "a", State.FUTURE)


def test_the_last_attempt_is_buried_with_its_traceback(
    queue: QueueFace, consume: Consume, clock: ManualClock
) -> None:
    def charge_the_card(delivery: Any) -> None:
        raise ConnectionError(f"try {delivery.attempt}: the bank is closed")

    queue.offer("a", 1)
    consume(queue, charge_the_card, max_attempts=3, backoff=Backoff(first=SECOND))
    for attempt in (1, 2):
        until(partial(is_in, queue, "a", State.FUTURE, attempt))
        clock.advance(HOUR)
    until(partial(is_in, queue, "a", State.BURIED, 3))
    (message,) = queue.buried(10)
    assert message.attempts == 3
    assert "failed 3 times" in message.reason
    assert "ConnectionError: try 3: the bank is closed" in message.reason
    assert "in charge_the_card" in message.reason


def test_without_its_own_a_consumer_goes_by_the_queues_max_attempts(
    open_queue: OpenQueue, consume: Consume
) -> None:
    queue = open_queue(max_attempts=1)
    queue.offer("a", 1)
    consume(queue, lambda _: Retry())
    until(partial(is_in, queue, "a", State.BURIED))


def test_a_consumer_gives_up_in_the_end_unless_it_is_asked_not_to(
    open_queue: OpenQueue, consume: Consume, clock: ManualClock
) -> None:
    for name, options, state in (
        ("limited", {}, State.BURIED),
        ("unlimited", {"max_attempts": None}, State.FUTURE),
    ):
        queue = open_queue(name)
        queue.offer("a", 1)
        for _ in range(24):
            claim(queue).release()
        consume(queue, lambda _: raised(LookupError("always")), **options)
        until(partial(is_in, queue, "a", state, 25))


def test_crashes_count_as_attempts(queue: QueueFace, consume: Consume, clock: ManualClock) -> None:
    queue.offer("deadly", 1)
    for _ in range(2):
        claim(queue)
        clock.advance(DEFAULT_LEASE)
    handled: list[str] = []
    consume(queue, lambda delivery: handled.append(delivery.key), max_attempts=2)
    until(partial(is_in, queue, "deadly", State.BURIED, 2))
    (message,) = queue.buried(1)
    assert message.attempts == 2
    assert handled == []


def test_what_cannot_be_decoded_does_not_hold_up_the_rest(
    open_queue: OpenQueue, consume: Consume
) -> None:
    queue = open_queue(codec=PickyCodec())
    handled: list[str] = []
    consume(queue, lambda delivery: handled.append(delivery.key))
    queue.offer_batch([Message("bad", "rotten"), Message("good", "sound")])
    until(lambda: queue.stats().total == 0)
    assert (handled, keys_of(queue.buried(10))) == (["good"], ["bad"])


ODD_ENDS: dict[str, Callable[[], object]] = {
    "a delay that is a number": lambda: Retry(5),  # type: ignore[arg-type] # that is the mistake
    "a negative delay": lambda: Retry(-SECOND),
    "a reason that is no text": lambda: Bury(ValueError("x")),  # type: ignore[arg-type] # likewise
    "no reason": lambda: raised(Bury),  # type: ignore[arg-type] # likewise
    "the class itself": lambda: Retry,
    "the class itself, raised": lambda: raised(Retry),  # type: ignore[arg-type] # likewise
    "a class that needs a reason": lambda: Bury,
    "the class of an error": lambda: ValueError,
}


@pytest.mark.parametrize("end", ODD_ENDS.values(), ids=ODD_ENDS)
def test_an_odd_outcome_is_a_failure_like_any_other(
    queue: QueueFace, consume: Consume, end: Callable[[], object]
) -> None:
    queue.offer("odd", 1)
    consume(queue, lambda delivery: end() if delivery.key == "odd" else None)
    until(partial(is_in, queue, "odd", State.FUTURE))
    queue.offer("next", 1)
    until_gone(queue, "next")
    assert snapshot(queue, "odd").attempts == 1


@pytest.mark.parametrize("face", ["sync"], indirect=True)
def test_a_thread_outlives_a_handler_that_exits(queue: QueueFace, consume: Consume) -> None:
    def handle(delivery: Any) -> None:
        if delivery.key == "exit":
            raise SystemExit(1)

    queue.offer("exit", 1)
    consume(queue, handle, concurrency=1)
    until(partial(is_in, queue, "exit", State.FUTURE))
    queue.offer("next", 1)
    until_gone(queue, "next")


def test_a_failure_is_logged_with_its_traceback(
    queue: QueueFace, consume: Consume, caplog: pytest.LogCaptureFixture
) -> None:
    def charge_the_card(delivery: Any) -> None:
        raise ConnectionError("the bank is closed")

    queue.offer("order-7", 1)
    with caplog.at_level(logging.WARNING, "duequeue"):
        consume(queue, charge_the_card)
        until(partial(is_in, queue, "order-7", State.FUTURE))
    (record,) = records_of("duequeue.consumer", caplog)
    assert re.fullmatch(
        r"queue 'orders': 'order-7' failed \(attempt 1 of 25\) and is retried in (\d+ ms|1.0 s): "
        "ConnectionError: the bank is closed",
        record.getMessage(),
    )
    assert record.levelno == logging.WARNING
    assert "charge_the_card" in caplog.text


def test_a_burial_for_too_many_failures_is_logged_as_an_error(
    queue: QueueFace, consume: Consume, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    def charge_the_card(delivery: Any) -> None:
        raise KeyError("card")

    queue.offer("order-7", 1)
    with caplog.at_level(logging.WARNING, "duequeue"):
        consume(queue, charge_the_card, max_attempts=2)
        until(partial(is_in, queue, "order-7", State.FUTURE))
        clock.advance(HOUR)
        until(partial(is_in, queue, "order-7", State.BURIED, 2))
    failed, buried = records_of("duequeue.consumer", caplog)
    assert "failed (attempt 1 of 2) and is retried in" in failed.getMessage()
    assert buried.getMessage() == (
        "queue 'orders': 'order-7' failed (attempt 2 of 2) and is buried after 2 attempts: "
        "KeyError: 'card'"
    )
    assert (failed.levelno, buried.levelno) == (logging.WARNING, logging.ERROR)
    assert buried.exc_info is not None


def test_a_handler_that_asks_for_too_many_retries_is_logged_in_one_line(
    queue: QueueFace, consume: Consume, caplog: pytest.LogCaptureFixture
) -> None:
    queue.offer("order-7", 1)
    with caplog.at_level(logging.WARNING, "duequeue"):
        consume(queue, lambda _: Retry(), max_attempts=1)
        until(partial(is_in, queue, "order-7", State.BURIED))
    (record,) = records_of("duequeue.consumer", caplog)
    assert "failed (attempt 1 of 1) and is buried after 1 attempt: " in record.getMessage()
    assert (record.levelno, record.exc_info) == (logging.ERROR, None)


def test_a_burial_by_a_poll_is_logged(
    open_queue: OpenQueue, consume: Consume, caplog: pytest.LogCaptureFixture
) -> None:
    queue = open_queue(codec=PickyCodec())
    queue.offer("bad", "rotten")
    with caplog.at_level(logging.WARNING, "duequeue"):
        consume(queue, lambda _: None)
        until(lambda: queue.stats().buried == 1)
        until(lambda: records_of("duequeue", caplog) != [])
    (record,) = records_of("duequeue", caplog)
    assert record.getMessage().startswith("queue 'orders': buried 'bad': undecodable payload: ")
    assert record.levelno == logging.ERROR


def test_a_class_in_place_of_a_burial_is_logged(
    queue: QueueFace, consume: Consume, caplog: pytest.LogCaptureFixture
) -> None:
    queue.offer("order-7", 1)
    with caplog.at_level(logging.WARNING, "duequeue"):
        consume(queue, lambda _: Bury)
        until(partial(is_in, queue, "order-7", State.FUTURE))
    (record,) = records_of("duequeue.consumer", caplog)
    assert "failed (attempt 1 of 25) and is retried in" in record.getMessage()
    assert "the handler returned the class Bury" in caplog.text


def test_what_is_asked_for_is_not_logged_as_a_failure(
    queue: QueueFace, consume: Consume, caplog: pytest.LogCaptureFixture
) -> None:
    queue.offer("a", 1)
    with caplog.at_level(logging.WARNING, "duequeue"):
        consume(queue, lambda _: raised(Bury("as planned")))
        until(partial(is_in, queue, "a", State.BURIED))
    assert records_of("duequeue.consumer", caplog) == []


def test_consumers_share_a_queue(open_queue: OpenQueue, consume: Consume) -> None:
    handled: list[str] = []
    queues = [open_queue() for _ in range(3)]
    for queue in queues:
        consume(queue, lambda delivery: handled.append(delivery.key), concurrency=2, batch=7)
    keys = [str(number) for number in range(500)]
    queues[0].offer_batch([Message(key, 1) for key in keys])
    until(lambda: queues[0].stats().total == 0)
    assert sorted(handled) == sorted(keys)


def test_ten_thousand_due_in_the_same_millisecond(
    open_queue: OpenQueue, consume: Consume, clock: ManualClock
) -> None:
    handled: list[str] = []
    queues = [open_queue() for _ in range(2)]
    for queue in queues:
        consume(queue, lambda delivery: handled.append(delivery.key))
    keys = [f"{number:05}" for number in range(10_000)]
    queues[0].offer_batch([Message(key, 1, HOUR) for key in keys])
    assert handled == []
    clock.advance(HOUR)
    until(lambda: len(handled) >= len(keys))
    until(lambda: queues[0].stats().total == 0)
    assert sorted(handled) == keys


@pytest.mark.argument_checks
@pytest.mark.parametrize("option", ["concurrency", "batch", "max_attempts"])
@pytest.mark.parametrize("value", [0, -1, 1.5, "8", True])
def test_bad_numbers(queue: QueueFace, consume: Consume, option: str, value: Any) -> None:
    with pytest.raises(ValueError, match=option):
        consume(queue, **{option: value})


@pytest.mark.argument_checks
@pytest.mark.parametrize("face", ["sync"], indirect=True)
def test_a_coroutine_function_is_refused_by_threads(queue: QueueFace) -> None:
    async def handle(delivery: object) -> None:
        raise AssertionError(delivery)

    class Handler:
        async def __call__(self, delivery: object) -> None:
            raise AssertionError(delivery)

    threads: Any = queue
    for handler in (handle, Handler(), Handler().__call__):
        with pytest.raises(TypeError, match="AsyncQueue"):
            threads.consume(handler)


@pytest.mark.parametrize("face", ["sync"], indirect=True)
def test_a_coroutine_that_threads_get_is_a_failure_and_not_an_ack(
    queue: QueueFace, caplog: pytest.LogCaptureFixture
) -> None:
    async def handle(delivery: object) -> None:
        raise AssertionError(delivery)

    queue.offer("a", 1)
    threads: Any = queue
    with threads.consume(lambda delivery: handle(delivery)):  # noqa: PLW0108 - its result is the point
        until(lambda: records_of("duequeue.consumer", caplog) != [])
    (record,) = records_of("duequeue.consumer", caplog)
    assert record.exc_info is not None
    assert "returned a coroutine" in str(record.exc_info[1])
    assert queue.contains("a")
