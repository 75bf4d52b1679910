"""What handlers do to their consumer, and what it must survive."""

import asyncio
import threading
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from duequeue import AsyncQueue, Backoff, Message, Queue, QueueClosed

PATIENCE = 20


@dataclass(frozen=True, slots=True)
class BrokenBackoff(Backoff):
    """A backoff of somebody's own making."""

    def delay(self, attempt: int) -> timedelta:
        raise ZeroDivisionError(attempt)


def fail(delivery: Any) -> None:
    raise RuntimeError(delivery.key)


def test_a_backoff_is_a_backoff() -> None:
    with Queue.open("memory:", "orders") as queue:
        wrong: Any = timedelta(seconds=1)
        with pytest.raises(TypeError, match="backoff"):
            queue.consume(fail, backoff=wrong)


def test_a_backoff_that_fails_does_not_keep_the_message() -> None:
    handled = threading.Semaphore(0)

    def handle(delivery: Any) -> None:
        handled.release()
        fail(delivery)

    with Queue.open("memory:", "orders") as queue:
        queue.offer("a", 1)
        with queue.consume(handle, concurrency=1, backoff=BrokenBackoff()):
            assert all(handled.acquire(timeout=PATIENCE) for _ in range(3))
        assert queue.stats().leased == 0


def test_a_handler_on_a_thread_may_stop_its_consumer() -> None:
    stopped = threading.Event()

    def handle(_: Any) -> None:
        consumer.stop()
        stopped.set()

    with Queue.open("memory:", "orders") as queue:
        consumer = queue.consume(handle, concurrency=2)
        queue.offer_batch([Message(f"{n}", n) for n in range(5)])
        assert stopped.wait(PATIENCE)
        consumer.stop()
        assert queue.stats().leased == 0


def test_a_handler_on_a_task_may_stop_its_consumer() -> None:
    async def scenario() -> None:
        async with AsyncQueue.open("memory:", "orders") as queue:
            stopped = asyncio.Event()

            async def handle(_: Any) -> None:
                await consumer.stop()
                stopped.set()

            consumer = queue.consume(handle, concurrency=2)
            await queue.offer_batch([Message(f"{n}", n) for n in range(5)])
            async with asyncio.timeout(PATIENCE):
                await stopped.wait()
                await consumer.stop()
            assert (await queue.stats()).leased == 0

    asyncio.run(scenario())


def test_a_handler_that_cancels_itself_costs_no_worker() -> None:
    async def scenario() -> None:
        async with AsyncQueue.open("memory:", "orders") as queue:
            handled = asyncio.Event()

            async def handle(delivery: Any) -> None:
                if delivery.key == "b":
                    handled.set()
                    return
                task = asyncio.current_task()
                assert task is not None
                task.cancel()
                await asyncio.sleep(0)

            await queue.offer_batch([Message("a", 1), Message("b", 1)])
            async with queue.consume(handle, concurrency=1), asyncio.timeout(PATIENCE):
                await handled.wait()
            stats = await queue.stats()
            assert (stats.total, stats.leased) == (1, 0)

    asyncio.run(scenario())


def test_a_loop_that_ends_takes_its_consumers_along() -> None:
    async def scenario() -> None:
        # Never closed, so it lives under a name of its own.
        queue = await AsyncQueue.open("memory:left behind", "orders")
        queue.consume(lambda _: asyncio.sleep(3600))
        await queue.offer("a", 1)
        await asyncio.sleep(0)

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE))


def test_a_closed_queue_starts_no_consumer() -> None:
    queue = Queue.open("memory:", "orders")
    queue.close()
    with pytest.raises(QueueClosed):
        queue.consume(fail)


def test_closing_from_within_closing() -> None:
    with Queue.open("memory:", "orders") as queue:
        queue.events.subscribe(lambda _: queue.close())
        queue.offer("a", 1)  # closes it, from its own listener
        with pytest.raises(QueueClosed):
            queue.stats()
