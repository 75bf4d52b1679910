"""The base of contenders on asyncio, which have one event loop and await their calls."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from time import perf_counter
from typing import Any, TypeVar

from bench.contender import Contender, pause, stamp

T = TypeVar("T")


class AsyncContender(Contender):
    """A contender that opens, works and closes on one event loop."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._runner = self.new_runner()
        self.run(self.open())

    def new_runner(self) -> asyncio.Runner:
        """Return what runs the event loop."""
        return asyncio.Runner()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the event loop."""
        return self._runner.run(work)

    def close(self) -> None:
        """Close all connections, and end the event loop."""
        self.run(self.shut())
        self._runner.close()

    async def open(self) -> None:
        """Connect, and create the tables."""

    async def shut(self) -> None:
        """Close all connections."""


async def timed_async(times: int, call: Callable[[int], Awaitable[object]]) -> float:
    """Await one call after another, and return the seconds."""
    began = perf_counter()
    for number in range(times):
        await call(number)
    return perf_counter() - began


async def timed_together(
    times: int, callers: int, call: Callable[[int], Awaitable[object]]
) -> float:
    """Await the calls in several tasks at once, and return the seconds."""
    numbers = iter(range(times))

    async def caller() -> None:
        for number in numbers:
            await call(number)

    began = perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(callers):
            group.create_task(caller())
    return perf_counter() - began


async def pinged(messages: int, call: Callable[[int, float], Awaitable[object]]) -> None:
    """Await calls with a number and a stamp, with a pause before each."""
    for number in range(messages):
        await asyncio.sleep(pause())
        await call(number, stamp())
