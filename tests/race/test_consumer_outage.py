"""A server is restarted under busy consumers: they go on, and nothing is lost."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from functools import partial
from threading import Event
from typing import Any

import pytest

from duequeue import Backoff, Delivery, Message, Queue, RetryPolicy, StoreUnavailable
from duequeue.contract.faces import AsyncFace, Blocking, Face, LoopThread, QueueFace
from duequeue.contract.phrases import DAY, PATIENCE, SECOND, in_background
from duequeue.contract.stage import until
from tests.fixtures.mariadb import MariaDBServer
from tests.fixtures.postgres import PostgresServer, StopMode

WORKERS = 4


@contextmanager
def consuming(
    url: str, face: Face, loop: LoopThread, handle: Callable[[Any], object]
) -> Iterator[QueueFace]:
    """One worker, and its queue."""

    async def awaited(delivery: Any) -> None:
        handle(delivery)

    # What is claimed when the connection is lost, without the claimer's knowledge, waits out its
    # lease; so the lease is short, and passes in real time.
    with face.open(url, "orders", lease=2 * SECOND, poll_interval=SECOND / 2) as opened:
        queue: Any = opened
        if isinstance(face, AsyncFace):
            consumer: Any = Blocking(queue.consume(awaited), loop)
        else:
            consumer = queue.consume(handle)
        with consumer:
            yield opened


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_busy_consumers_outlive_a_restart(
    stoppable: PostgresServer | MariaDBServer,
    frail_url: str,
    face: Face,
    loop_thread: LoopThread,
    mode: StopMode,
) -> None:
    handled: set[str] = set()
    keys = [f"{number:05}" for number in range(4000)]
    later = [f"later-{number:05}" for number in range(400)]
    with ExitStack() as working, face.open(frail_url, "orders") as queue:
        queue.offer_batch([Message(key, 1) for key in keys])
        for _ in range(WORKERS):
            worker = consuming(frail_url, face, loop_thread, lambda each: handled.add(each.key))
            working.enter_context(worker)
        until(lambda: len(handled) >= 400)
        stoppable.restart(mode)
        queue.offer_batch([Message(key, 1) for key in later])
        until(lambda: queue.stats().total == 0)
    assert handled == {*keys, *later}


@pytest.mark.parametrize("grace", [timedelta(0), SECOND / 100], ids=repr)
def test_a_stop_does_not_wait_for_a_server_that_is_gone(
    stoppable: PostgresServer | MariaDBServer,
    frail_url: str,
    face: Face,
    loop_thread: LoopThread,
    grace: timedelta,
) -> None:
    patient = RetryPolicy(budget=DAY)
    with face.open(frail_url, "orders", retry=patient) as opened:
        queue: Any = opened
        queue.offer_batch([Message(str(number), 1) for number in range(3)])
        running, goes_on = Event(), Event()

        def handle(_: Any) -> None:
            running.set()
            goes_on.wait(PATIENCE)

        async def handle_awaiting(delivery: Any) -> None:
            await asyncio.to_thread(handle, delivery)

        if isinstance(face, AsyncFace):
            consumer: Any = Blocking(queue.consume(handle_awaiting, concurrency=1), loop_thread)
        else:
            consumer = queue.consume(handle, concurrency=1)
        assert running.wait(PATIENCE)
        with stoppable.stopped():
            in_background(partial(consumer.stop, grace)).result(PATIENCE)
        goes_on.set()


def test_a_handler_whose_own_ack_failed_has_not_handled_its_message(
    stoppable: PostgresServer | MariaDBServer, frail_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    running, goes_on, failed = Event(), Event(), Event()

    def handle(delivery: Delivery[Any]) -> None:
        running.set()
        goes_on.wait(PATIENCE)
        try:
            delivery.ack()
        except StoreUnavailable as error:
            failed.set()
            raise ValueError("not handled") from error

    later = Backoff(first=DAY, longest=DAY)
    never = RetryPolicy.never()
    with Queue[Any].open(frail_url, "orders", retry=never) as queue:
        queue.offer("a", 1)
        with queue.consume(handle, backoff=later):
            assert running.wait(PATIENCE)
            with stoppable.stopped():
                goes_on.set()
                assert failed.wait(PATIENCE)
            until(lambda: has_later(queue))
    said = [each for each in caplog.messages if "'a' failed (attempt 1 of 25)" in each]
    assert len(said) == 1
    assert said[0].endswith(", unless its handler has settled it: ValueError: not handled")


def has_later(queue: Queue[Any]) -> bool:
    """Return whether a message waits, as far as the server answers already."""
    try:
        return queue.stats().future == 1
    except StoreUnavailable:
        return False
