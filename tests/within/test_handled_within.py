"""Handlers that ack in a transaction of their own, on threads and on tasks."""

import logging
from typing import Any

import pytest

from duequeue import Backoff, DeliveryLost, Handled, LeaseLost, ManualClock
from duequeue.contract.faces import QueueFace
from duequeue.contract.fixtures import Consume
from duequeue.contract.logs import messages_of
from duequeue.contract.phrases import HOUR
from duequeue.contract.stage import Scene, Stage
from duequeue.contract.test_events import Diary
from tests.within.conftest import Connect

LATER = Backoff(first=HOUR, longest=HOUR)


@pytest.fixture(params=["sqlite", "postgres", "mariadb"])
def store(request: pytest.FixtureRequest) -> str:
    """Each store that has transactions."""
    return str(request.param)


def ack_within(queue: QueueFace, scene: Scene, connection: Any) -> int:
    delivery: Any = scene.delivery
    return queue.within(connection).ack_many([delivery])


def losses(diary: Diary) -> list[object]:
    return [event for event in diary.so_far() if isinstance(event, LeaseLost)]


def test_it_has_handled_its_message(
    queue: QueueFace,
    stage: Stage,
    consume: Consume,
    connect: Connect,
    caplog: pytest.LogCaptureFixture,
) -> None:
    queue.offer("order-7", 1)
    diary = Diary(queue)
    with caplog.at_level(logging.DEBUG, "duequeue.consumer"), consume(queue):
        scene, connection = stage.next(), connect()
        assert ack_within(queue, scene, connection) == 1
        connection.commit()
        scene.end()
        assert diary.next(Handled).outcome == "settled"
    assert losses(diary) == []
    assert messages_of("duequeue.consumer", caplog) == []
    assert queue.stats().total == 0


def test_a_message_that_is_gone_is_lost_and_not_retried(
    queue: QueueFace,
    stage: Stage,
    consume: Consume,
    connect: Connect,
    caplog: pytest.LogCaptureFixture,
) -> None:
    queue.offer("order-7", 1)
    diary = Diary(queue)
    with caplog.at_level(logging.DEBUG, "duequeue.consumer"), consume(queue):
        scene = stage.next()
        assert queue.drop("order-7")
        connection = connect()
        assert ack_within(queue, scene, connection) == 0
        connection.rollback()
        scene.end(DeliveryLost("somebody dropped it"))
        diary.next(LeaseLost)
        assert diary.next(Handled).outcome == "lost"
    assert losses(diary) == []
    assert messages_of("duequeue.consumer", caplog) == [
        "queue 'orders': lost the lease of 'order-7', says its handler: somebody dropped it"
    ]


@pytest.mark.parametrize("ended", ["rolled back", "committed"])
def test_its_exception_is_a_failure_whose_release_wins_only_after_a_rollback(
    queue: QueueFace,
    stage: Stage,
    consume: Consume,
    connect: Connect,
    caplog: pytest.LogCaptureFixture,
    ended: str,
) -> None:
    queue.offer("order-7", 1)
    diary = Diary(queue)
    with caplog.at_level(logging.DEBUG, "duequeue.consumer"), consume(queue, backoff=LATER):
        scene, connection = stage.next(), connect()
        assert ack_within(queue, scene, connection) == 1
        if ended == "committed":
            connection.commit()
        else:
            connection.rollback()
        scene.end(ValueError("no such card"))
        assert diary.next(Handled).outcome == "released"
    (said,) = messages_of("duequeue.consumer", caplog)
    assert "'order-7' failed (attempt 1 of 25) and is retried in" in said
    assert said.endswith(", unless its handler has settled it: ValueError: no such card")
    assert losses(diary) == []
    stats = queue.stats()
    assert (stats.total, stats.future) == ((0, 0) if ended == "committed" else (1, 1))


def test_its_lease_is_kept_until_it_has_ended(
    queue: QueueFace, stage: Stage, consume: Consume, connect: Connect, clock: ManualClock
) -> None:
    queue.offer("order-7", 1)
    diary = Diary(queue)
    with consume(queue, lease=HOUR):
        scene, connection = stage.next(), connect()
        assert ack_within(queue, scene, connection) == 1
        connection.rollback()
        for _ in range(3):
            before = scene.delivery.lease_until
            clock.advance(HOUR / 2)
            while scene.delivery.lease_until == before:
                queue.stats()
        retried = connect()
        assert ack_within(queue, scene, retried) == 1
        retried.commit()
        scene.end()
        diary.next(Handled)
    assert queue.stats().total == 0
