"""The reads of all requests, which take turns so that they never hold up producers and consumers.

See decision 66.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from math import inf
from time import monotonic
from typing import Any, TypeVar

from duequeue.errors import StoreUnavailable
from duequeue.flows.context import Context
from duequeue.port.store import AsyncSession, Backend, Operation, ReadsApart
from duequeue.process.contact import StoreContact
from duequeue.retry_policy import RetryPolicy
from duequeue.server.limits import Limits
from duequeue.server.problems import Problem

T = TypeVar("T")

# A read that took this many seconds is slow, and takes its next turn among the slow ones.
SLOW_SECONDS = 0.02
# After a read, its place stays empty for three times as long, so the store has time for others.
REST = 3.0
REMEMBERED = 1000
# The database itself ends a read that takes too long; if it does not, we do so a little later.
SLACK_SECONDS = 1.0


class Reads:
    """Two lines of reads: in one a few run at a time, and in that of the slow ones only one."""

    def __init__(self, limits: Limits, answers: Callable[[], Awaitable[bool]]) -> None:
        self._seconds = limits.read_seconds
        self._answers = answers
        self._quick = asyncio.Semaphore(limits.reads)
        self._slow = asyncio.Semaphore(1)
        self._next: dict[object, asyncio.Task[Any]] = {}
        self._slow_ones: OrderedDict[object, None] = OrderedDict()

    @asynccontextmanager
    async def turn(self, of: object) -> AsyncIterator[None]:
        """Wait for a turn to read something, which lasts until the block ends."""
        is_slow = of in self._slow_ones
        line = self._slow if is_slow else self._quick
        await self._wait(line)
        began = monotonic()
        try:
            yield
        except StoreUnavailable as error:
            if monotonic() - began >= self._seconds and await self._answers():
                raise _too_long(self._seconds) from error
            raise
        finally:
            took = monotonic() - began
            self._remember(of, took)
            rest = min(REST * took, self._seconds / 2)  # so that the next one still gets its turn
            asyncio.get_running_loop().call_later(rest, line.release)

    async def shared(self, of: object, read: Callable[[], Awaitable[T]]) -> T:
        """Read something in a turn, and return the result to all who ask before it begins."""
        running = self._next.get(of)
        if running is None:
            running = self._next[of] = asyncio.create_task(self._read(of, read))
            running.add_done_callback(partial(self._ended, of))
        result: T = await asyncio.shield(running)
        return result

    async def _read(self, of: object, read: Callable[[], Awaitable[T]]) -> T:
        this = asyncio.current_task()
        async with self.turn(of):
            self._begun(of, this)  # who asks from now on wants to see what changes meanwhile
            return await read()

    def _ended(self, of: object, read: "asyncio.Task[Any]") -> None:
        self._begun(of, read)
        if not read.cancelled():
            read.exception()  # those who asked may have gone

    def _begun(self, of: object, read: "asyncio.Task[Any] | None") -> None:
        if self._next.get(of) is read:
            del self._next[of]

    async def _wait(self, line: asyncio.Semaphore) -> None:
        try:
            async with asyncio.timeout(self._seconds):
                await line.acquire()
        except TimeoutError:
            raise Problem(
                429,
                "too-many-reads",
                f"other reads kept this one waiting for {self._seconds:.3g} seconds; try again, "
                "or read less often",
                headers={b"retry-after": b"1"},
            ) from None

    def _remember(self, of: object, took: float) -> None:
        self._slow_ones.pop(of, None)
        if took >= SLOW_SECONDS:
            self._slow_ones[of] = None
            if len(self._slow_ones) > REMEMBERED:
                self._slow_ones.popitem(last=False)


class ReadingSession:
    """Runs operations that only read, none of them for long."""

    def __init__(self, backend: Backend, limits: Limits) -> None:
        self._seconds = limits.read_seconds + SLACK_SECONDS
        self._session: AsyncSession = (
            backend.reading_session(limits.reads + 1, limits.read_seconds)
            if isinstance(backend, ReadsApart)
            else backend.async_session()
        )

    async def run(
        self, operation: Operation[T], seconds: float = inf, *, consumes: bool = False
    ) -> T:
        """Run one operation."""
        return await self._session.run(operation, min(seconds, self._seconds), consumes=consumes)

    async def close(self) -> None:
        """Close the session."""
        await self._session.close()


def reading(context: Context[T], limits: Limits) -> Context[T]:
    """Return the context of reads, whose failures say nothing about the store."""
    retry = RetryPolicy(budget=timedelta(seconds=limits.read_seconds))
    return replace(context, retry=retry, contact=_Unheard())


class _Unheard(StoreContact):
    """The contact of reads: one that took too long is not an outage."""

    def failed(self, error: BaseException) -> None:
        """Note nothing."""


def _too_long(seconds: float) -> Problem:
    return Problem(
        503,
        "read-too-long",
        f"this read took longer than {seconds:.3g} seconds; ask for less",
    )
