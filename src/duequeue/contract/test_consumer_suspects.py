"""A message that may have killed its process is handled alone, and buries no other one."""

import pytest

from duequeue import ManualClock, Message
from duequeue.contract.faces import QueueFace
from duequeue.contract.fixtures import START, Consume, OpenQueue
from duequeue.contract.phrases import (
    DEFAULT_LEASE,
    MINUTE,
    PATIENCE,
    SECOND,
    claim,
    in_background,
    snapshot,
)
from duequeue.contract.stage import Stage, until, until_gone
from duequeue.message import State


@pytest.fixture
def suspect(queue: QueueFace, clock: ManualClock) -> str:
    """A message that has lost two leases, and is due first."""
    queue.offer("suspect", 1, START - MINUTE)
    for _ in range(2):
        claim(queue)
        clock.advance(DEFAULT_LEASE)
    return "suspect"


def test_a_suspect_is_handled_alone(
    queue: QueueFace, stage: Stage, consume: Consume, suspect: str
) -> None:
    queue.offer_batch([Message(key, 1) for key in "ab"])
    with consume(queue):
        first, second = stage.next(), stage.next()
        assert {first.delivery.key, second.delivery.key} == {"a", "b"}
        until(lambda: snapshot(queue, suspect).state is State.DUE)
        first.end()
        until_gone(queue, first.delivery.key)
        assert stage.is_empty()
        second.end()
        alone = stage.next()
        assert (alone.delivery.key, alone.delivery.attempt) == (suspect, 3)
        queue.offer("c", 1)
        assert (queue.stats().leased, queue.stats().due) == (1, 1)
        assert stage.is_empty()
        alone.end()
        after = stage.next()
        assert (after.delivery.key, after.delivery.attempt) == ("c", 1)
        assert not queue.contains(suspect)
        after.end()


def test_suspects_are_handled_one_by_one(
    queue: QueueFace, stage: Stage, consume: Consume, clock: ManualClock
) -> None:
    keys = [f"order-{number:02}" for number in range(20)]
    queue.offer_batch([Message(key, 1) for key in keys])
    for _ in range(2):
        assert len(queue.try_poll_many(50)) == len(keys)
        clock.advance(DEFAULT_LEASE)
    with consume(queue, max_attempts=3):
        for key in keys:
            scene = stage.next()
            assert (scene.delivery.key, scene.delivery.attempt) == (key, 3)
            assert queue.stats().leased == 1
            scene.end()
        until(lambda: queue.stats().total == 0)
    assert queue.stats().buried == 0


def test_a_suspect_that_is_released_is_one_no_longer(
    queue: QueueFace, stage: Stage, consume: Consume, clock: ManualClock, suspect: str
) -> None:
    with consume(queue):
        scene = stage.next()
        assert scene.delivery.key == suspect
        scene.end(LookupError("not this time"))
        until(lambda: snapshot(queue, suspect).state is State.FUTURE)
        queue.offer("a", 1)
        first = stage.next()
        clock.advance(MINUTE / 2)
        second = stage.next()
        assert {first.delivery.key, second.delivery.key} == {"a", suspect}
        first.end()
        second.end()


def test_with_one_attempt_nothing_is_fetched_ahead(
    queue: QueueFace, stage: Stage, consume: Consume
) -> None:
    queue.offer_batch([Message(key, 1) for key in "abcd"])
    with consume(queue, concurrency=2, max_attempts=1):
        scenes = [stage.next(), stage.next()]
        assert (queue.stats().leased, queue.stats().due) == (2, 2)
        for key in "cd":
            scenes.pop(0).end()
            scenes.append(stage.next())
            assert scenes[-1].delivery.key == key
        for scene in scenes:
            scene.end()
        until(lambda: queue.stats().total == 0)


def test_a_burial_says_that_the_process_died(
    queue: QueueFace, stage: Stage, consume: Consume, suspect: str
) -> None:
    consume(queue, max_attempts=2)
    until(lambda: queue.stats().buried == 1)
    (buried,) = queue.buried(1)
    assert (buried.key, buried.attempts) == (suspect, 2)
    assert "its process died while it was handled" in buried.reason
    assert stage.is_empty()


def test_a_suspect_runs_beside_no_other_consumer_of_the_process(
    queue: QueueFace,
    open_queue: OpenQueue,
    stage: Stage,
    consume: Consume,
    clock: ManualClock,
    suspect: str,
) -> None:
    mails = open_queue("mails")
    mails.offer("mail", 1)
    with consume(mails, concurrency=1):
        mail = stage.next()
        queue.offer("a", 1)
        with consume(queue):
            first = stage.next()
            assert (mail.delivery.key, first.delivery.key) == ("mail", "a")
            first.end()
            until_gone(queue, "a")
            clock.advance(SECOND)
            mail.end()
            alone = stage.next()
            assert (alone.delivery.key, alone.delivery.delivered_at) == (suspect, clock.now())
            until_gone(mails, "mail")
            mails.offer("later mail", 1)
            until(lambda: mails.stats().leased == 1)
            assert stage.is_empty()
            alone.end()
            after = stage.next()
            assert after.delivery.key == "later mail"
            after.end()
            until_gone(mails, "later mail")


def test_nothing_begins_beside_a_suspect_whose_consumer_stops(
    queue: QueueFace, open_queue: OpenQueue, stage: Stage, consume: Consume, suspect: str
) -> None:
    mails = open_queue("mails")
    with consume(mails):
        consumer = consume(queue)
        alone = stage.next()
        assert alone.delivery.key == suspect
        stopping = in_background(consumer.stop)
        queue.offer("a", 1)  # what a feeder that goes on would fetch
        mails.offer("mail", 1)
        until(lambda: mails.stats().leased == 1)
        assert stage.is_empty()
        alone.end()
        stopping.result(PATIENCE)
        mail = stage.next()
        assert mail.delivery.key == "mail"
        mail.end()
