"""What contenders on asyncio have in common: one event loop, and calls that are awaited."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from time import perf_counter
from typing import Any, TypeVar

from bench.contender import Contender, pause, stamp

T = TypeVar("T")


class AsyncContender(Contender):
    """A contender that opens, works and shuts on one event loop."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._runner = asyncio.Runner()
        self.run(self.open())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do some work on the event loop."""
        return self._runner.run(work)

    def close(self) -> None:
        """Shut, and end the event loop."""
        self.run(self.shut())
        self._runner.close()

    async def open(self) -> None:
        """Connect, and make the tables."""

    async def shut(self) -> None:
        """Give everything back."""


async def timed_async(times: int, call: Callable[[int], Awaitable[object]]) -> float:
    """Await one after the other; return the seconds it took."""
    began = perf_counter()
    for number in range(times):
        await call(number)
    return perf_counter() - began


async def timed_together(
    times: int, callers: int, call: Callable[[int], Awaitable[object]]
) -> float:
    """Await them by several tasks at once; return the seconds it took."""
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
    """Await with a number and a stamp, once in a while."""
    for number in range(messages):
        await asyncio.sleep(pause())
        await call(number, stamp())
