"""Consumers that stop, and connections that close, by themselves when their test ends."""

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from typing import Any, Protocol

import pytest

from duequeue import ManualClock
from tests.contract.ledger import Ledger, OpenCounted, open_awaiting, open_blocking
from tests.contract.phrases import DEFAULT_POLL_INTERVAL
from tests.contract.stage import NO_GRACE, ConsumerFace, Stage
from tests.fixtures.faces import Blocking, Face, LoopThread, QueueFace, SyncFace

# Opens a connection of the application's own.
Connect = Callable[[], Any]


class Consume(Protocol):
    """Starts consumers, by default with the stage as their handler."""

    def __call__(
        self, queue: QueueFace, handler: Callable[[Any], object] | None = None, **options: Any
    ) -> ConsumerFace: ...


@pytest.fixture
def stage(face: Face, request: pytest.FixtureRequest) -> Iterator[Stage]:
    """The handler under the test's direction."""
    on_threads = isinstance(face, SyncFace)
    stage = Stage(None if on_threads else request.getfixturevalue("loop_thread"))
    yield stage
    stage.close()


@pytest.fixture
def consume(stage: Stage, queue: QueueFace) -> Iterator[Consume]:
    """A factory of consumers; a plain function is a handler for either face."""
    with ExitStack() as started:

        def start(
            queue: QueueFace, handler: Callable[[Any], object] | None = None, **options: Any
        ) -> ConsumerFace:
            suited = stage.handler if handler is None else _suited(handler, stage)
            queue_of_either_face: Any = queue
            consumer: ConsumerFace = stage.face_of(queue_of_either_face.consume(suited, **options))
            started.callback(consumer.stop, NO_GRACE)
            return consumer

        yield start


@pytest.fixture
def open_counted(
    face: Face, store_url: str, clock: ManualClock, request: pytest.FixtureRequest
) -> Iterator[OpenCounted]:
    """A factory of queues that keep count."""
    with ExitStack() as opened:

        def open_one(
            *, poll_interval: timedelta = DEFAULT_POLL_INTERVAL
        ) -> tuple[QueueFace, Ledger]:
            counter: Counter[str] = Counter()
            queue: Any
            if isinstance(face, SyncFace):
                queue = open_blocking(store_url, clock, counter, poll_interval)
            else:
                loop: LoopThread = request.getfixturevalue("loop_thread")
                opening = open_awaiting(store_url, clock, counter, poll_interval)
                queue = Blocking(loop.run(lambda: opening), loop)
            opened.callback(queue.close)
            return queue, counter

        yield open_one


@pytest.fixture
def connect(store: str, store_url: str, face: Face) -> Iterator[Connect]:
    """A factory of the application's own connections to the store, each in an open transaction."""
    with ExitStack() as opened:

        def connect_one() -> Any:
            if store == "postgres":
                connection = face.connect_postgres(store_url)
            else:
                connection = sqlite3.connect(
                    store_url.removeprefix("sqlite:///"),
                    check_same_thread=False,
                    isolation_level=None,
                )
                connection.execute("BEGIN IMMEDIATE")
            opened.callback(connection.close)
            return connection

        yield connect_one


def _suited(handler: Callable[[Any], object], stage: Stage) -> Callable[[Any], object]:
    async def awaited(delivery: Any) -> object:
        return handler(delivery)

    return handler if stage.on_threads else awaited
