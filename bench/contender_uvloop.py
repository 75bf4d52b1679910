"""The base of the contenders of the service, which all use the event loop of the server."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from time import perf_counter
from typing import TypeVar

import uvloop

from bench.contender_async import AsyncContender

T = TypeVar("T")

# How many connections or tasks offer and take hundreds.
CALLERS = 4


class UvloopContender(AsyncContender):
    """A contender on uvloop."""

    def new_runner(self) -> asyncio.Runner:
        """Return a runner with the fast event loop."""
        return asyncio.Runner(loop_factory=uvloop.new_event_loop)


async def shared_out(
    work: Iterable[T], callers: Sequence[Callable[[T], Awaitable[object]]]
) -> float:
    """Let callers take pieces of work in turn until there are none, and return the seconds."""
    pieces = iter(work)

    async def run(call: Callable[[T], Awaitable[object]]) -> None:
        for piece in pieces:
            await call(piece)

    began = perf_counter()
    async with asyncio.TaskGroup() as group:
        for call in callers:
            group.create_task(run(call))
    return perf_counter() - began
