"""Common first mistakes are refused, and the error names the way out."""

import asyncio
import copy
import pickle
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from duequeue import AsyncQueue, ManualClock, Queue, QueueClosed
from duequeue.contract.fixtures import START

QUEUE: Any = Queue
ASYNC_QUEUE: Any = AsyncQueue


@pytest.fixture
def queue() -> Iterator[Queue[Any]]:
    with Queue.open("memory:", "orders") as opened:
        yield opened


@pytest.mark.parametrize("face", [QUEUE, ASYNC_QUEUE])
def test_a_queue_is_not_made_by_its_class(face: Any) -> None:
    calls: list[Callable[[], object]] = [
        face,
        lambda: face("memory:", "orders"),
        lambda: face("memory:", "orders", str),
        lambda: face(url="memory:", name="orders"),
        lambda: face("memory:", "orders", codec=str),
    ]
    for call in calls:
        with pytest.raises(TypeError, match=rf"{face.__name__}\.open\(url, name\)"):
            call()


@pytest.mark.parametrize("duplicate", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_queue_cannot_be_copied(queue: Queue[Any], duplicate: Callable[[object], object]) -> None:
    with pytest.raises(TypeError, match=r"Queue cannot be pickled .*Queue\.open in each process"):
        duplicate(queue)


def test_an_awaiting_queue_cannot_be_copied() -> None:
    async def scenario() -> None:
        async with AsyncQueue.open("memory:", "orders") as queue:
            with pytest.raises(TypeError, match=r"AsyncQueue\.open in each process"):
                pickle.dumps(queue)

    asyncio.run(scenario())


def test_with_for_async_with() -> None:
    opening: Any = AsyncQueue.open("memory:", "orders")
    with pytest.raises(TypeError, match="async with"), opening:
        pass

    async def scenario() -> None:
        async with AsyncQueue.open("memory:", "orders") as queue:
            entered: Any = queue
            with pytest.raises(TypeError, match="enter an AsyncQueue with `async with`"), entered:
                pass

    asyncio.run(scenario())


def test_async_with_for_with(queue: Any) -> None:
    async def scenario() -> None:
        with pytest.raises(TypeError, match="enter a Queue with `with`"):
            async with queue:
                pass

    asyncio.run(scenario())
    queue.offer("a", 1)


def test_an_awaiting_queue_belongs_to_its_event_loop(store_url: str) -> None:
    opened = asyncio.Runner()
    queue = opened.run(open_one(store_url))
    calls: list[Callable[[], Any]] = [
        lambda: queue.offer("a", 1),
        queue.try_poll,
        lambda: queue.poll(timedelta(0)),
        queue.stats,
        queue.cron.list,
        queue.close,
    ]
    for call in calls:
        with pytest.raises(QueueClosed, match="'orders' was opened in another event loop"):
            asyncio.run(awaited(call))
    with opened:
        opened.run(queue.offer("a", 1))
        opened.run(queue.close())
    asyncio.run(queue.close())  # closing twice is fine from anywhere


async def open_one(url: str) -> AsyncQueue[Any]:
    return await AsyncQueue.open(url, "orders", clock=ManualClock(START))


async def awaited(call: Callable[[], Any]) -> object:
    return await call()
