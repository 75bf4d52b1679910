"""Our consumer on tasks."""

import asyncio
from collections.abc import Callable
from time import perf_counter, time_ns

from bench.contenders.duequeue_base import QUEUE, OursBase
from duequeue import AsyncDelivery, AsyncQueue


class Contestant(OursBase):
    """`AsyncQueue.consume` with its defaults."""

    name = "DueQueue, tasks"

    def drain(self, url: str, messages: int) -> float:
        """Count calls of a handler that does nothing else."""
        began = perf_counter()
        asyncio.run(_consume(url, messages, lambda _: 0, lambda: None))
        return perf_counter() - began

    def receive(self, url: str, messages: int, ready: Callable[[], None]) -> list[int]:
        """Note the age of each message."""
        return asyncio.run(_consume(url, messages, lambda d: time_ns() - d.payload, ready))


async def _consume(
    url: str,
    messages: int,
    look: Callable[[AsyncDelivery[int]], int],
    ready: Callable[[], None],
) -> list[int]:
    seen: list[int] = []
    done = asyncio.Event()

    async def handle(delivery: AsyncDelivery[int]) -> None:
        seen.append(look(delivery))
        if len(seen) == messages:
            done.set()

    async with AsyncQueue.open(url, QUEUE) as queue, queue.consume(handle):
        ready()
        await done.wait()
    return seen
