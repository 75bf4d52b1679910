"""PostgreSQL: an extension never waits for a row that another transaction has locked."""

import logging

import psycopg
import pytest

from duequeue import ManualClock, Message, RetryPolicy, StoreUnavailable
from duequeue.contract.faces import QueueFace
from duequeue.contract.fixtures import Consume, OpenQueue
from duequeue.contract.phrases import (
    CONSUMER_LEASE,
    PATIENCE,
    claim,
    in_background,
    snapshot,
)
from duequeue.contract.stage import Stage, until, until_leased

LOCK = "SELECT 1 FROM duequeue_message WHERE key = 'a' FOR UPDATE"
UPDATE = "UPDATE duequeue_message SET lease_token = 0 WHERE key = 'a'"

pytestmark = pytest.mark.parametrize("store", ["postgres"], indirect=True)


def test_without_another_try_an_extension_says_what_it_waited_for(
    open_queue: OpenQueue, store_url: str
) -> None:
    queue = open_queue(retry=RetryPolicy.never())
    queue.offer("a", 1)
    held = claim(queue)
    with psycopg.connect(store_url) as rival:
        rival.execute(LOCK)
        with pytest.raises(StoreUnavailable, match=r"'a'.*'orders'.*another transaction"):
            held.extend()
    assert held.extend()


@pytest.mark.parametrize(("change", "wins"), [(LOCK, True), (UPDATE, False)])
def test_an_extension_is_tried_again_until_the_lock_is_gone(
    queue: QueueFace,
    store_url: str,
    caplog: pytest.LogCaptureFixture,
    change: str,
    wins: bool,
) -> None:
    queue.offer("a", 1)
    held = claim(queue)
    with psycopg.connect(store_url) as rival:
        rival.execute(change.encode())
        extending = in_background(held.extend)
        # A call that is retried for longer than a second logs why.
        until(lambda: "another transaction has locked the message" in caplog.text)
        rival.commit()
        assert extending.result(PATIENCE) is wins


def test_a_consumer_extends_the_others_and_tries_again(
    queue: QueueFace,
    store_url: str,
    stage: Stage,
    consume: Consume,
    clock: ManualClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    queue.offer_batch([Message(key, key) for key in "abc"])
    with consume(queue, concurrency=3):
        scenes = {scene.delivery.key: scene for scene in (stage.next() for _ in range(3))}
        with psycopg.connect(store_url) as rival:
            rival.execute(LOCK)
            clock.advance(CONSUMER_LEASE / 2)
            until_leased(queue, "b", clock.now() + CONSUMER_LEASE)
            scenes["c"].end()
            until(lambda: not queue.contains("c"))
            assert not scenes["a"].delivery.lost
            assert snapshot(queue, "a").leased_until != clock.now() + CONSUMER_LEASE
        until_leased(queue, "a", clock.now() + CONSUMER_LEASE)
        for key in "ab":
            scenes[key].end()
    assert queue.stats().total == 0
    assert not caplog.records


def test_a_consumer_learns_that_a_locked_lease_is_lost(
    queue: QueueFace, store_url: str, stage: Stage, consume: Consume, clock: ManualClock
) -> None:
    queue.offer("a", 1)
    with consume(queue):
        scene = stage.next()
        with psycopg.connect(store_url) as rival:
            rival.execute(UPDATE)
            clock.advance(CONSUMER_LEASE / 2)
        until(lambda: scene.delivery.lost)
