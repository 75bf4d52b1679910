"""Leases under a consumer: kept alive while handlers run, and what happens when one is lost."""

import logging
from datetime import timedelta
from functools import partial

import pytest

from duequeue import ManualClock, Message, defaults
from duequeue.contract.faces import QueueFace
from duequeue.contract.fixtures import START, Consume, OpenQueue
from duequeue.contract.ledger import OpenCounted
from duequeue.contract.logs import messages_of
from duequeue.contract.phrases import (
    CONSUMER_LEASE,
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    everything_in,
    snapshot,
)
from duequeue.contract.stage import Scene, Stage, until, until_gone, until_leased

HALF_A_LEASE = CONSUMER_LEASE / 2


def advance_and_await_extension(queue: QueueFace, key: str, clock: ManualClock) -> None:
    clock.advance(HALF_A_LEASE)
    until_leased(queue, key, clock.now() + CONSUMER_LEASE)


def is_told(scene: Scene, stage: Stage) -> bool:
    """Whether the handler knows that its lease is lost: by a flag, on tasks by cancellation."""
    return scene.delivery.lost and (stage.on_threads or scene.cancelled)


def test_a_handler_may_take_longer_than_the_lease(
    queue: QueueFace, stage: Stage, consume: Consume, clock: ManualClock, open_queue: OpenQueue
) -> None:
    queue.offer("a", 1)
    other = open_queue()
    with consume(queue):
        scene = stage.next()
        for _ in range(10):
            advance_and_await_extension(queue, "a", clock)
            assert other.try_poll() is None
        until(lambda: scene.delivery.lease_until == clock.now() + CONSUMER_LEASE)
        assert scene.delivery.attempt == 1
        scene.end()
    assert queue.stats().total == 0
    assert stage.is_empty()


@pytest.mark.parametrize(
    ("of_queue", "of_consumer", "expected"),
    [
        (None, None, MINUTE),
        (defaults.LEASE, None, defaults.LEASE),
        (SECOND, None, SECOND),
        (None, HOUR, HOUR),
        (HOUR, SECOND, SECOND),
    ],
)
def test_a_consumer_leases_for_a_minute_unless_somebody_says_otherwise(
    open_queue: OpenQueue,
    stage: Stage,
    consume: Consume,
    of_queue: timedelta | None,
    of_consumer: timedelta | None,
    expected: timedelta,
) -> None:
    queue = open_queue("orders", lease=of_queue)
    queue.offer("a", 1)
    with consume(queue, lease=of_consumer):
        scene = stage.next()
        assert scene.delivery.lease_until == START + expected
        scene.end()


@pytest.mark.argument_checks
def test_a_consumer_refuses_a_lease_of_nothing(queue: QueueFace, consume: Consume) -> None:
    with pytest.raises(ValueError, match="lease must be at least one millisecond"):
        consume(queue, lease=0 * SECOND)


def test_all_leases_are_extended_in_one_statement(
    open_counted: OpenCounted, stage: Stage, consume: Consume, clock: ManualClock
) -> None:
    queue, ledger = open_counted()
    queue.offer_batch([Message(str(n), n) for n in range(20)])
    consume(queue, concurrency=4)
    for _ in range(4):
        stage.next()
    until(lambda: queue.stats().leased == 20)
    for times in range(1, 4):
        advance_and_await_extension(queue, "0", clock)
        ends = {snapshot(queue, str(n)).leased_until for n in range(20)}
        assert ends == {clock.now() + CONSUMER_LEASE}
        assert ledger["extend"] == times


def test_young_leases_are_left_alone(
    open_counted: OpenCounted, stage: Stage, consume: Consume, clock: ManualClock
) -> None:
    queue, ledger = open_counted()
    queue.offer("a", 1)
    consume(queue)
    stage.next()
    for _ in range(10):
        clock.advance(SECOND)
        queue.stats()
    assert ledger["extend"] == 0


def test_a_lost_lease_is_told_and_the_outcome_is_not_settled(
    queue: QueueFace, stage: Stage, consume: Consume, clock: ManualClock
) -> None:
    queue.offer("a", "old", START)
    consume(queue)
    scene = stage.next()
    assert not is_told(scene, stage)
    queue.offer("a", "new", START + DAY)
    clock.advance(HALF_A_LEASE)
    until(lambda: is_told(scene, stage))
    before = everything_in(queue, "a")
    if stage.on_threads:
        scene.end(ValueError("nobody wants to know"))
    queue.offer("b", 1)
    stage.next().end()
    until_gone(queue, "b")
    assert everything_in(queue, "a") == before


def test_a_lost_lease_is_noticed_once(
    open_counted: OpenCounted,
    stage: Stage,
    consume: Consume,
    clock: ManualClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    queue, ledger = open_counted()
    queue.offer("a", "old", START)
    with caplog.at_level(logging.WARNING, "duequeue.consumer"):
        consume(queue)
        scene = stage.next()
        queue.offer("a", "new", START + DAY)
        clock.advance(HALF_A_LEASE)
        until(lambda: is_told(scene, stage))
        for key in "bcd":  # each of them makes the consumer settle, and look after its leases
            queue.offer(key, 1)
            stage.next().end()
            until_gone(queue, key)
    assert ledger["extend"] == 1
    assert messages_of("duequeue.consumer", caplog) == ["queue 'orders': lost the lease of 'a'"]


def test_what_waits_is_not_begun_once_its_lease_is_lost(
    queue: QueueFace, stage: Stage, consume: Consume, clock: ManualClock
) -> None:
    queue.offer_batch([Message("a", "old", START), Message("b", "old", START)])
    consume(queue, concurrency=1)
    first = stage.next()
    until(lambda: queue.stats().leased == 2)
    queue.offer("b", "new", START + SECOND)
    advance_and_await_extension(queue, "a", clock)
    advance_and_await_extension(queue, "a", clock)  # by now the first one's losses are known
    until(lambda: queue.stats().leased == 2)  # fetched again, as it is now
    first.end()
    second = stage.next()
    assert (second.delivery.key, second.delivery.payload) == ("b", "new")
    second.end()
    until(lambda: queue.stats().total == 0)
    assert stage.is_empty()


def test_who_has_lost_everything_goes_on(
    queue: QueueFace, stage: Stage, consume: Consume, clock: ManualClock
) -> None:
    queue.offer_batch([Message(str(n), 1) for n in range(10)])
    consume(queue, concurrency=1, batch=10)
    running = stage.next()
    until(lambda: queue.stats().leased == 10)
    queue.drop_all("orders")
    clock.advance(HALF_A_LEASE)
    until(lambda: is_told(running, stage))
    if stage.on_threads:
        running.end()
    queue.offer("new", 1)
    assert stage.next().delivery.key == "new"


def test_who_has_settled_has_no_lease_to_lose(
    queue: QueueFace, stage: Stage, consume: Consume, clock: ManualClock
) -> None:
    queue.offer_batch([Message("settled", 1), Message("other", 1)])
    with consume(queue, concurrency=2):
        scenes = {scene.delivery.key: scene for scene in (stage.next(), stage.next())}
        settled = scenes["settled"]
        assert settled.delivery.ack()
        advance_and_await_extension(queue, "other", clock)
        advance_and_await_extension(queue, "other", clock)
        assert not settled.delivery.lost
        assert not settled.cancelled
        for scene in scenes.values():
            scene.end()
    assert queue.stats().total == 0


def test_a_message_may_come_again_while_its_lost_lease_is_still_in_hand(
    queue: QueueFace, stage: Stage, consume: Consume, clock: ManualClock
) -> None:
    queue.offer("a", "old", START)
    consume(queue, concurrency=2)
    lost = stage.next()
    queue.offer("a", "new", START)
    again = stage.next()
    assert again.delivery.payload == "new"
    clock.advance(HALF_A_LEASE)
    until(lambda: is_told(lost, stage))
    assert not is_told(again, stage)
    again.end()
    until_gone(queue, "a")


def test_a_worker_is_not_cancelled_for_its_last_handlers_sake(
    queue: QueueFace, stage: Stage, consume: Consume, clock: ManualClock
) -> None:
    consume(queue, concurrency=1)
    for _ in range(3):
        queue.offer("a", "old", START)
        scene = stage.next()
        queue.drop("a")
        clock.advance(HALF_A_LEASE)
        until(partial(is_told, scene, stage))
        if stage.on_threads:
            scene.end()
        queue.offer("b", 1)
        scene = stage.next()
        assert (scene.delivery.key, scene.cancelled) == ("b", False)
        scene.end()
        until_gone(queue, "b")


def test_the_clock_is_set_back_while_a_handler_runs(
    queue: QueueFace, stage: Stage, consume: Consume, clock: ManualClock
) -> None:
    queue.offer("a", 1)
    consume(queue)
    scene = stage.next()
    clock.advance(-DAY)
    queue.offer("b", 1)
    other = stage.next()
    for each in (scene, other):
        each.end()
    until(lambda: queue.stats().total == 0)


def test_the_clock_jumps_past_the_lease_while_a_handler_runs(
    queue: QueueFace, stage: Stage, consume: Consume, clock: ManualClock
) -> None:
    """Whether it is extended first or leased once more: somebody holds it, and it is acked once."""
    queue.offer("a", 1)
    consume(queue)
    scene = stage.next()
    clock.advance(DAY)
    until_leased(queue, "a", clock.now() + CONSUMER_LEASE)
    if not scene.cancelled:
        scene.end()
    while queue.contains("a"):
        if not stage.is_empty():
            stage.next().end()
    assert queue.stats().buried == 0
