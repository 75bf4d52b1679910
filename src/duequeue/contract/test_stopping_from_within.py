"""A consumer is stopped, or its queue closed, by a handler or by a listener on its own threads."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from duequeue import Bury, Message, QueueClosed
from duequeue.contract.faces import QueueFace
from duequeue.contract.fixtures import Consume, OpenQueue
from duequeue.contract.logs import messages_of
from duequeue.contract.phrases import PATIENCE, SECOND, in_background, snapshot
from duequeue.contract.stage import LITTLE_GRACE, Scene, Stage, until
from duequeue.events.events import Buried, Delivered, Event, Handled, LeaseLost
from duequeue.message import State

# The feeder reports deliveries, the worker what it has handled, and the keeper burials.
BY_ANY_ROLE = pytest.mark.parametrize("kind", [Delivered, Handled, Buried])


class Caller:
    """Calls a method where it is: on threads it blocks, on an event loop a task awaits it."""

    def __init__(self, stage: Stage) -> None:
        self._on_threads = stage.on_threads
        self._tasks: list[asyncio.Future[Any]] = []

    def call(self, face: Any, method: str, *arguments: object) -> None:
        if self._on_threads:
            getattr(face, method)(*arguments)
        else:
            awaited = getattr(face.awaited, method)(*arguments)
            self._tasks.append(asyncio.ensure_future(awaited))


@pytest.fixture
def caller(stage: Stage) -> Caller:
    return Caller(stage)


def at_the_first(kind: type[Event], queue: QueueFace, act: Callable[[], None]) -> threading.Event:
    """Act once, on the thread where the first event of a kind happens; return what says so."""
    acted = threading.Event()

    def listener(event: Event) -> None:
        if isinstance(event, kind) and not acted.is_set():
            acted.set()
            act()

    queue_of_either_face: Any = queue
    queue_of_either_face.events.subscribe(listener)
    return acted


def is_closed(queue: QueueFace) -> bool:
    try:
        queue.stats()
    except QueueClosed:
        return True
    return False


def is_closed_once_handlers_end(queue: QueueFace, stage: Stage) -> bool:
    while not stage.is_empty():
        stage.next().end()
    return is_closed(queue)


def both_begun(stage: Stage) -> dict[str, Scene]:
    return {scene.delivery.key: scene for scene in (stage.next(), stage.next())}


@BY_ANY_ROLE
def test_a_listener_may_stop_the_consumer(
    queue: QueueFace,
    stage: Stage,
    consume: Consume,
    caller: Caller,
    kind: type[Event],
    caplog: pytest.LogCaptureFixture,
) -> None:
    consumer = consume(queue, concurrency=2)
    acted = at_the_first(kind, queue, lambda: caller.call(consumer, "stop", LITTLE_GRACE))
    queue.offer_batch([Message("hangs", 1, -SECOND), Message("ends", 1)])
    if kind is not Delivered:
        both_begun(stage)["ends"].end(Bury("enough"))
    assert acted.wait(PATIENCE)
    until(lambda: queue.stats().leased == 0)
    assert snapshot(queue, "hangs").state is State.DUE
    assert snapshot(queue, "ends").state is (State.DUE if kind is Delivered else State.BURIED)
    in_background(consumer.stop).result(PATIENCE)
    assert messages_of("duequeue", caplog) == []


@BY_ANY_ROLE
def test_a_listener_may_close_the_queue(
    open_queue: OpenQueue,
    stage: Stage,
    consume: Consume,
    caller: Caller,
    kind: type[Event],
    caplog: pytest.LogCaptureFixture,
) -> None:
    queue, other = open_queue(), open_queue()
    consume(queue, concurrency=2)
    at_the_first(kind, queue, lambda: caller.call(queue, "close"))
    queue.offer_batch([Message("slow", 1, -SECOND), Message("ends", 1)])
    if kind is not Delivered:
        scenes = both_begun(stage)
        scenes["ends"].end(Bury("enough"))
        until(lambda: other.stats().buried == 1)
        scenes["slow"].end()
    until(lambda: is_closed_once_handlers_end(queue, stage))
    assert other.stats().leased == 0
    assert kind is Delivered or not other.contains("slow")
    assert messages_of("duequeue", caplog) == []


def test_a_handler_may_close_the_queue(
    open_queue: OpenQueue, stage: Stage, consume: Consume
) -> None:
    opened, other = open_queue(), open_queue()
    queue: Any = opened

    def handle(delivery: Any) -> object:
        if delivery.key == "slow":
            return stage.handler(delivery)
        return queue.close()

    async def handle_awaiting(delivery: Any) -> object:
        if delivery.key == "slow":
            return await stage.handler(delivery)
        return await queue.awaited.close()

    queue.offer_batch([Message("slow", 1, -SECOND), Message("closes", 1), Message("waits", 1)])
    queue.consume(handle if stage.on_threads else handle_awaiting, concurrency=2)
    slow = stage.next()
    until(lambda: not other.contains("closes"))
    slow.end()
    until(lambda: is_closed(opened))
    assert other.stats().leased == 0
    assert not other.contains("slow")


def test_a_listener_may_stop_a_consumer_that_is_being_stopped(
    queue: QueueFace, stage: Stage, consume: Consume, caller: Caller
) -> None:
    consumer = consume(queue)
    at_the_first(LeaseLost, queue, lambda: caller.call(consumer, "stop"))
    queue.offer("hangs", 1)
    stage.next()
    assert queue.drop("hangs")
    in_background(lambda: consumer.stop(LITTLE_GRACE)).result(PATIENCE)


def test_nothing_is_begun_once_a_handler_has_stopped_its_consumer(
    queue: QueueFace, stage: Stage
) -> None:
    begun: list[str] = []

    def handle(delivery: Any) -> None:
        begun.append(delivery.key)
        consumer.stop()

    async def handle_awaiting(delivery: Any) -> None:
        begun.append(delivery.key)
        await consumer.awaited.stop()

    queue_of_either_face: Any = queue
    handler = handle if stage.on_threads else handle_awaiting
    consumer = stage.face_of(queue_of_either_face.consume(handler, concurrency=1))
    queue.offer_batch([Message(str(number), number) for number in range(5)])
    until(lambda: len(begun) > 0)
    in_background(consumer.stop).result(PATIENCE)
    assert begun == ["0"]
    stats = queue.stats()
    assert (stats.due, stats.leased) == (4, 0)
