"""The fixtures of the contract: an empty store, queues on it, and consumers that stop themselves.

Override `store_url` where a URL alone does not make an empty store.
"""

import secrets
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import pytest

from duequeue import ManualClock
from duequeue.contract.faces import Blocking, Face, LoopThread, QueueFace, SyncFace
from duequeue.contract.ledger import Ledger, OpenCounted, open_awaiting, open_blocking
from duequeue.contract.phrases import DEFAULT_POLL_INTERVAL
from duequeue.contract.stage import NO_GRACE, ConsumerFace, Stage

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


class OpenQueue(Protocol):
    """Opens queues of the store and face under test, on one URL per test."""

    def __call__(self, name: str = "orders", **options: Any) -> QueueFace: ...


class Consume(Protocol):
    """Starts consumers, by default with the stage as their handler."""

    def __call__(
        self, queue: QueueFace, handler: Callable[[Any], object] | None = None, **options: Any
    ) -> ConsumerFace: ...


@pytest.fixture
def store_url(pytestconfig: pytest.Config) -> str:
    """The URL of a store without a message in it."""
    given = pytestconfig.getoption("--url")
    if given is None or "{unique}" not in given:
        reason = (
            "name the store with --url, and write {unique} where its name differs for each test"
        )
        pytest.exit(reason, pytest.ExitCode.USAGE_ERROR)
    return str(given).replace("{unique}", secrets.token_hex(8))


@pytest.fixture
def shared_url(store_url: str, pytestconfig: pytest.Config) -> str:
    """The same URL, for a test in which other processes or later ones find the messages."""
    if pytestconfig.getoption("--one-process"):
        pytest.skip("this store ends with its process")
    return store_url


@pytest.fixture
def clock() -> ManualClock:
    """The one clock of this test."""
    return ManualClock(START)


@pytest.fixture
def open_queue(face: Face, store_url: str, clock: ManualClock) -> Iterator[OpenQueue]:
    """A factory of queues on the store under test, all on the test's clock."""
    with ExitStack() as opened:

        def open_one(name: str = "orders", **options: Any) -> QueueFace:
            queue = face.open(store_url, name, **{"clock": clock, **options})
            opened.callback(queue.close)
            return queue

        yield open_one


@pytest.fixture
def queue(open_queue: OpenQueue) -> QueueFace:
    """A queue with every default, for JSON payloads."""
    return open_queue()


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


def _suited(handler: Callable[[Any], object], stage: Stage) -> Callable[[Any], object]:
    async def awaited(delivery: Any) -> object:
        return handler(delivery)

    return handler if stage.on_threads else awaited
