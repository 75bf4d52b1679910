"""What a queue tells its listeners, on every store and both faces."""

from datetime import timedelta
from queue import SimpleQueue
from typing import Any, TypeVar

import pytest

from duequeue import Bury, ManualClock, Message
from duequeue.contract.faces import QueueFace
from duequeue.contract.fixtures import Consume, OpenQueue
from duequeue.contract.phrases import DEFAULT_LEASE, PATIENCE, SECOND, PickyCodec, claim
from duequeue.contract.stage import Stage, until
from duequeue.events.events import (
    Buried,
    Delivered,
    Event,
    Events,
    Handled,
    LeaseLost,
    Offered,
)
from duequeue.verdict import Acked, Parked, Released

E = TypeVar("E", bound=Event)


class Diary:
    """A listener that keeps what it was told."""

    def __init__(self, queue: QueueFace) -> None:
        self._told: SimpleQueue[Event] = SimpleQueue()
        queue_of_either_face: Any = queue
        events: Events = queue_of_either_face.events
        self.close = events.subscribe(self._told.put)

    def so_far(self) -> list[Event]:
        return [self._told.get() for _ in range(self._told.qsize())]

    def next(self, kind: type[E]) -> E:
        """Wait until something of a kind is told."""
        while True:
            event = self._told.get(timeout=PATIENCE)
            if isinstance(event, kind):
                return event


def test_offers_are_counted_by_outcome(queue: QueueFace, clock: ManualClock) -> None:
    diary = Diary(queue)
    queue.offer("a", 1, clock.now())
    queue.offer_batch(
        [Message("a", 1, clock.now()), Message("a", 2), Message("b", 1), Message("c", 1)]
    )
    assert diary.so_far() == [Offered("orders", 1, 0, 0), Offered("orders", 2, 1, 1)]


def test_deliveries_tell_how_late_they_are(queue: QueueFace, clock: ManualClock) -> None:
    queue.offer_batch([Message("a", 1), Message("b", 1, SECOND)])
    diary = Diary(queue)
    assert queue.try_poll_many(0) == []
    clock.advance(3 * SECOND)
    assert len(queue.try_poll_many(2)) == 2
    clock.advance(DEFAULT_LEASE)
    claim(queue)
    late = 3 * SECOND + DEFAULT_LEASE
    assert diary.so_far() == [
        Delivered("orders", "a", 1, 3 * SECOND),
        Delivered("orders", "b", 1, 2 * SECOND),
        Delivered("orders", "a", 2, late),
    ]


def test_nothing_is_told_after_unsubscribing(queue: QueueFace) -> None:
    diary = Diary(queue)
    diary.close()
    queue.offer("a", 1)
    assert claim(queue).bury("enough")
    assert diary.so_far() == []


def test_a_burial_is_told_by_whom_so_ever(open_queue: OpenQueue) -> None:
    queue = open_queue(codec=PickyCodec(), max_attempts=1)
    diary = Diary(queue)
    queue.offer("rotten", "rotten")
    assert queue.try_poll() is None
    queue.offer("often", "fine")
    assert claim(queue).release()
    assert queue.try_poll() is None
    queue.offer("unwanted", "fine")
    delivery = claim(queue)
    assert delivery.bury("unwanted")
    assert not delivery.bury("twice")
    told = [event for event in diary.so_far() if isinstance(event, Buried)]
    assert [event.key for event in told] == ["rotten", "often", "unwanted"]
    assert "undecodable" in told[0].reason
    assert "max_attempts" in told[1].reason
    assert told[2] == Buried("orders", "unwanted", "unwanted")


def test_a_handler_that_ends_is_told(queue: QueueFace, stage: Stage, consume: Consume) -> None:
    diary = Diary(queue)
    queue.offer("a", 1)
    with consume(queue):
        stage.next().end()
        told = diary.next(Handled)
    assert (told.key, told.attempt, told.verdict, told.error) == ("a", 1, Acked(), None)
    assert told.duration >= timedelta(0)


def test_a_handler_that_fails_is_told(queue: QueueFace, stage: Stage, consume: Consume) -> None:
    diary = Diary(queue)
    queue.offer("a", 1)
    with consume(queue):
        error = LookupError("no such order")
        stage.next().end(error)
        told = diary.next(Handled)
        assert isinstance(told.verdict, Released)
        assert told.error is error


def test_a_handler_that_buries_is_told_and_so_is_the_burial(
    queue: QueueFace, stage: Stage, consume: Consume
) -> None:
    diary = Diary(queue)
    queue.offer("a", 1)
    with consume(queue):
        stage.next().end(Bury("enough"))
        assert diary.next(Handled).verdict == Parked("enough")
        assert diary.next(Buried) == Buried("orders", "a", "enough")


def test_a_handler_that_settles_itself_is_told(
    queue: QueueFace, stage: Stage, consume: Consume
) -> None:
    diary = Diary(queue)
    queue.offer("a", 1)
    with consume(queue):
        scene = stage.next()
        assert scene.delivery.ack()
        scene.end()
        told = diary.next(Handled)
        assert (told.verdict, told.outcome) == (None, "settled")
    assert not [event for event in diary.so_far() if isinstance(event, LeaseLost)]


def test_a_lease_lost_under_a_handler_is_told_once(
    queue: QueueFace, stage: Stage, consume: Consume, clock: ManualClock
) -> None:
    diary = Diary(queue)
    queue.offer("a", 1)
    with consume(queue):
        scene = stage.next()
        assert queue.drop("a")
        clock.advance(DEFAULT_LEASE / 2)
        assert diary.next(LeaseLost) == LeaseLost("orders", "a")
        if stage.on_threads:
            scene.end()
        assert diary.next(Handled).verdict is None
    assert not [event for event in diary.so_far() if isinstance(event, LeaseLost)]


def test_a_lease_lost_by_the_time_of_the_ack_is_told(
    queue: QueueFace, stage: Stage, consume: Consume
) -> None:
    diary = Diary(queue)
    queue.offer("a", 1)
    with consume(queue):
        scene = stage.next()
        assert queue.drop("a")
        scene.end()
        assert diary.next(LeaseLost) == LeaseLost("orders", "a")


def test_a_listener_that_fails_does_not_disturb_a_consumer(
    queue: QueueFace, stage: Stage, consume: Consume, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(event: Event) -> None:
        raise LookupError("not today")

    queue_of_either_face: Any = queue
    queue_of_either_face.events.subscribe(fail)
    queue.offer_batch([Message(str(n), n) for n in range(20)])
    with consume(queue, lambda _: None):
        until(lambda: queue.stats().total == 0)
    assert "not today" in caplog.text
