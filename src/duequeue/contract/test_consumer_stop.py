"""Stopping: what runs may finish, what waits is given back, and nothing waits out a lease."""

import os
import signal
from functools import partial
from threading import Event
from typing import Any

import pytest

from duequeue import ManualClock, Message, Queue, Retry
from duequeue.contract.faces import QueueFace
from duequeue.contract.fixtures import Consume, OpenQueue
from duequeue.contract.logs import messages_of
from duequeue.contract.phrases import (
    CONSUMER_LEASE,
    DAY,
    HOUR,
    PATIENCE,
    SECOND,
    in_background,
    keys_of,
    snapshot,
)
from duequeue.contract.stage import LITTLE_GRACE, NO_GRACE, Stage, until, until_leased
from duequeue.message import State


def test_what_runs_finishes_and_the_rest_is_given_back_at_once(
    queue: QueueFace, stage: Stage, consume: Consume, clock: ManualClock
) -> None:
    queue.offer_batch([Message(str(n), n, -n * SECOND) for n in range(10)])
    consumer = consume(queue, concurrency=2)
    running = [stage.next(), stage.next()]
    until(lambda: queue.stats().leased == 10)
    stopping = in_background(consumer.stop)
    until(lambda: queue.stats().due == 8)
    assert not stopping.done()
    again = queue.try_poll_many(10)
    assert keys_of(again) == ["7", "6", "5", "4", "3", "2", "1", "0"]
    assert {(delivery.attempt, delivery.redelivered) for delivery in again} == {(1, False)}
    for scene in running:
        assert not scene.delivery.lost
        scene.end()
    stopping.result(PATIENCE)
    assert queue.ack_many(again) == 8
    assert queue.stats().total == 0


def test_what_was_given_back_keeps_its_earlier_attempts(
    queue: QueueFace, stage: Stage, consume: Consume, clock: ManualClock
) -> None:
    queue.offer_batch([Message("runs", 1, -HOUR), Message("waits", 1)])
    consumer = consume(queue, concurrency=1)
    stage.next().end(Retry(DAY))
    stage.next().end(Retry(DAY))
    until(lambda: queue.stats().future == 2)
    clock.advance(DAY)
    running = stage.next()
    until(lambda: queue.stats().leased == 2)
    stopping = in_background(consumer.stop)
    until(lambda: queue.stats().due == 1)
    running.end()
    stopping.result(PATIENCE)
    (delivery,) = queue.try_poll_many(2)
    assert (delivery.key, delivery.attempt) == ("waits", 2)


def test_acks_are_flushed(queue: QueueFace, consume: Consume) -> None:
    handled: list[str] = []
    enough = Event()

    def handle(delivery: Any) -> None:
        handled.append(delivery.key)
        if len(handled) == 300:
            enough.set()

    keys = {str(number) for number in range(1000)}
    queue.offer_batch([Message(key, 1) for key in keys])
    with consume(queue, handle, batch=50):
        assert enough.wait(PATIENCE)
    assert queue.stats().leased == 0
    left = queue.try_poll_many(1000)
    assert sorted(handled + keys_of(left)) == sorted(keys)
    assert {delivery.attempt for delivery in left} <= {1}


def test_who_outlives_the_grace_is_given_up_on(
    queue: QueueFace, stage: Stage, consume: Consume
) -> None:
    queue.offer("hangs", 1)
    consumer = consume(queue)
    scene = stage.next()
    consumer.stop(LITTLE_GRACE)
    assert scene.delivery.lost
    assert scene.cancelled is not stage.on_threads
    assert snapshot(queue, "hangs").state is State.DUE
    if stage.on_threads:
        scene.end()  # too late
    (delivery,) = queue.try_poll_many(2)
    assert (delivery.attempt, delivery.redelivered) == (2, True)  # it was delivered, after all
    assert delivery.ack()


def test_a_handler_that_ends_within_the_grace_is_settled(
    queue: QueueFace, stage: Stage, consume: Consume
) -> None:
    queue.offer_batch([Message("well", 1), Message("badly", 1)])
    consumer = consume(queue, concurrency=2)
    scenes = {scene.delivery.key: scene for scene in (stage.next(), stage.next())}
    stopping = in_background(consumer.stop)
    scenes["well"].end()
    scenes["badly"].end(Retry(HOUR))
    stopping.result(PATIENCE)
    assert queue.read("well") is None
    assert snapshot(queue, "badly").state is State.FUTURE


def test_without_grace_nothing_is_waited_for(
    queue: QueueFace, stage: Stage, consume: Consume
) -> None:
    queue.offer_batch([Message(str(n), n) for n in range(10)])
    consumer = consume(queue, concurrency=4)
    for _ in range(4):
        stage.next()
    consumer.stop(NO_GRACE)
    stats = queue.stats()
    assert (stats.due, stats.leased) == (10, 0)


def test_leases_are_kept_alive_during_the_grace(
    queue: QueueFace, stage: Stage, consume: Consume, clock: ManualClock
) -> None:
    queue.offer_batch([Message("runs", 1), Message("waits", 1)])
    consumer = consume(queue, concurrency=1)
    scene = stage.next()
    until(lambda: queue.stats().leased == 2)
    stopping = in_background(consumer.stop)
    until(lambda: queue.stats().due == 1)
    for _ in range(4):
        clock.advance(CONSUMER_LEASE / 2)
        until_leased(queue, "runs", clock.now() + CONSUMER_LEASE)
    scene.end()
    stopping.result(PATIENCE)
    assert queue.read("runs") is None


def test_stopping_twice(queue: QueueFace, stage: Stage, consume: Consume) -> None:
    queue.offer_batch([Message("runs", 1), Message("waits", 1)])
    consumer = consume(queue, concurrency=1)
    scene = stage.next()
    stops = [in_background(consumer.stop) for _ in range(3)]
    until(lambda: queue.stats().due == 1)
    assert not any(stopping.done() for stopping in stops)
    scene.end()
    for stopping in stops:
        stopping.result(PATIENCE)
    consumer.stop()
    consumer.stop(NO_GRACE)


@pytest.mark.parametrize("_round", range(5))
def test_a_second_stop_without_grace_ends_the_first(
    queue: QueueFace, stage: Stage, consume: Consume, _round: int
) -> None:
    queue.offer_batch([Message("hangs", 1), Message("waits", 1)])
    consumer = consume(queue, concurrency=1)
    stage.next()
    until(lambda: queue.stats().leased == 2)
    patient = in_background(partial(consumer.stop, HOUR))
    until(lambda: queue.stats().due == 1)
    consumer.stop(NO_GRACE)
    patient.result(PATIENCE)
    assert queue.stats().leased == 0


def test_a_stopped_consumer_takes_nothing_more(
    queue: QueueFace, stage: Stage, consume: Consume, clock: ManualClock
) -> None:
    queue.offer("later", 1, HOUR)
    consume(queue).stop()
    queue.offer("now", 1)
    clock.advance(HOUR)
    assert [delivery.attempt for delivery in queue.try_poll_many(10)] == [1, 1]
    assert stage.is_empty()


def test_others_take_over_at_once(open_queue: OpenQueue, stage: Stage, consume: Consume) -> None:
    first, second = open_queue(poll_interval=DAY), open_queue(poll_interval=DAY)
    first.offer_batch([Message(str(n), n) for n in range(5)])
    leaving = consume(first, concurrency=1)
    running = stage.next()
    until(lambda: first.stats().leased == 5)
    handled: list[str] = []
    consume(second, lambda delivery: handled.append(delivery.key))
    in_background(leaving.stop)
    until(lambda: len(handled) == 4)
    running.end()


def test_closing_the_queue_stops_its_consumer(
    open_queue: OpenQueue, stage: Stage, consume: Consume, caplog: pytest.LogCaptureFixture
) -> None:
    queue, other = open_queue(), open_queue()
    queue.offer("a", 1)
    consumer = consume(queue)
    scene = stage.next()
    closing = in_background(queue.close)
    scene.end()
    closing.result(PATIENCE)
    in_background(consumer.stop).result(PATIENCE)
    assert other.read("a") is None
    assert messages_of("duequeue.consumer", caplog) == []


def test_a_consumer_that_never_got_anything(queue: QueueFace, consume: Consume) -> None:
    for _ in range(20):
        consume(queue, concurrency=2).stop()


@pytest.mark.parametrize(
    ("grace", "error"), [(20, TypeError), ("x", TypeError), (-SECOND, ValueError)], ids=repr
)
def test_a_grace_is_a_duration(
    queue: QueueFace, consume: Consume, grace: Any, error: type[Exception]
) -> None:
    consumer: Any = consume(queue)
    for call in (consumer.stop, consumer.run):
        with pytest.raises(error, match="grace"):
            call(grace)


def test_an_interrupted_stop_becomes_a_hard_one(store_url: str, clock: ManualClock) -> None:
    begun, may_end = Event(), Event()

    def handler(_: object) -> None:
        begun.set()
        may_end.wait(PATIENCE)

    with Queue[int].open(store_url, "orders", clock=clock) as queue:
        queue.offer_batch([Message("runs", 1), Message("waits", 1)])
        consumer = queue.consume(handler, concurrency=1)
        assert begun.wait(PATIENCE)
        until(lambda: queue.stats().leased == 2)

        def interrupt_when_only_one_is_left() -> None:
            until(lambda: queue.stats().leased == 1)  # then the stop waits for its handler
            os.kill(os.getpid(), signal.SIGINT)

        interrupting = in_background(interrupt_when_only_one_is_left)
        with pytest.raises(KeyboardInterrupt):
            consumer.stop(HOUR)
        interrupting.result(PATIENCE)
        assert queue.stats().leased == 0
        may_end.set()
