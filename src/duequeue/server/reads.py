"""The reads of all requests, which take turns so that they never hold up producers and consumers.

See decision 66.
"""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from math import inf
from time import monotonic
from typing import Any, NamedTuple, TypeVar

from duequeue.errors import StoreUnavailable
from duequeue.flows.context import Context
from duequeue.port.store import Backend, Operation
from duequeue.process.contact import StoreContact
from duequeue.retry_policy import RetryPolicy
from duequeue.server.limits import Limits
from duequeue.server.problems import Problem
from duequeue.server.turns import Turns

T = TypeVar("T")

# A read that took this many seconds is slow, and takes its next turn among the slow ones.
SLOW_SECONDS = 0.02
# After a read, its place stays empty for three times as long, so the store has time for others.
REST = 3.0
REMEMBERED = 1000
# The database itself ends a read that takes too long; if it does not, we do so a little later.
SLACK_SECONDS = 1.0


class _Shared(NamedTuple):
    """A read that has not begun, so that others who ask for the same can still join."""

    line: Turns
    turn: "asyncio.Future[None]"
    reading: "asyncio.Task[Any]"
    asking: "Counter[str]"


class Reads:
    """Two lines of reads: in one a few run at a time, and in that of the slow ones only one."""

    def __init__(self, limits: Limits, answers: Callable[[], Awaitable[bool]]) -> None:
        self._seconds = limits.read_seconds
        self._answers = answers
        self._quick = Turns(limits.reads)
        self._slow = Turns(1)
        self._next: dict[object, _Shared] = {}
        self._slow_ones: OrderedDict[object, None] = OrderedDict()

    async def alone(self, of: object, token: str, read: Callable[[], Awaitable[T]]) -> T:
        """Read something in a turn."""
        async with self.turn(of, token):
            return await read()

    async def shared(self, of: object, token: str, read: Callable[[], Awaitable[T]]) -> T:
        """Read something in a turn, and return the result to all who ask before it begins.

        It waits with the tokens of all of them, and is cancelled when they have all gone.
        """
        shared = self._next.get(of)
        if shared is None:
            line, turn = self._line(of), _turn()
            reading = asyncio.create_task(self._read(of, line, turn, read))
            reading.add_done_callback(partial(self._ended, of))
            shared = self._next[of] = _Shared(line, turn, reading, Counter())
        if token not in shared.asking:
            shared.line.join(token, shared.turn)
        shared.asking[token] += 1
        try:
            result: T = await asyncio.shield(shared.reading)
        finally:
            shared.asking[token] -= 1
            if not shared.asking.total():
                self._begun(of, shared.reading)  # so that nobody joins any more
                shared.reading.cancel()
        return result

    @asynccontextmanager
    async def turn(self, of: object, token: str) -> AsyncIterator[None]:
        """Wait for a turn to read something, which lasts until the block ends."""
        line, turn = self._line(of), _turn()
        line.join(token, turn)
        async with self._in_turn(of, line, turn):
            yield

    @asynccontextmanager
    async def _in_turn(
        self, of: object, line: Turns, turn: "asyncio.Future[None]"
    ) -> AsyncIterator[None]:
        await self._wait(line, turn)
        began, has_ended = monotonic(), True
        try:
            yield
        except asyncio.CancelledError:
            has_ended = False
            raise
        except StoreUnavailable as error:
            if monotonic() - began >= self._seconds and await self._answers():
                raise _too_long(self._seconds) from error
            raise
        finally:
            took = monotonic() - began
            if has_ended or took >= SLOW_SECONDS:
                self._remember(of, took)
            rest = min(REST * took, self._seconds / 2)  # so that the next one still gets its turn
            asyncio.get_running_loop().call_later(rest, line.leave)

    def _line(self, of: object) -> Turns:
        return self._slow if of in self._slow_ones else self._quick

    async def _read(
        self,
        of: object,
        line: Turns,
        turn: "asyncio.Future[None]",
        read: Callable[[], Awaitable[T]],
    ) -> T:
        this = asyncio.current_task()
        async with self._in_turn(of, line, turn):
            self._begun(of, this)  # who asks from now on wants to see what changes meanwhile
            return await read()

    def _ended(self, of: object, reading: "asyncio.Task[Any]") -> None:
        self._begun(of, reading)
        if not reading.cancelled():
            reading.exception()  # those who asked may have gone

    def _begun(self, of: object, reading: "asyncio.Task[Any] | None") -> None:
        shared = self._next.get(of)
        if shared is not None and shared.reading is reading:
            del self._next[of]

    async def _wait(self, line: Turns, turn: "asyncio.Future[None]") -> None:
        try:
            async with asyncio.timeout(self._seconds):
                await turn
        except BaseException as error:
            line.drop(turn)
            if turn.done() and not turn.cancelled():  # it came just now
                line.leave()
            if isinstance(error, TimeoutError):
                raise _too_many(self._seconds) from None
            raise

    def _remember(self, of: object, took: float) -> None:
        self._slow_ones.pop(of, None)
        if took >= SLOW_SECONDS:
            self._slow_ones[of] = None
            if len(self._slow_ones) > REMEMBERED:
                self._slow_ones.popitem(last=False)


def _turn() -> "asyncio.Future[None]":
    return asyncio.get_running_loop().create_future()


class ReadingSession:
    """Runs operations that only read, none of them for long."""

    def __init__(self, backend: Backend, limits: Limits) -> None:
        self._seconds = limits.read_seconds + SLACK_SECONDS
        self._session = backend.reading_session(limits.reads + 1, limits.read_seconds)

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


def _too_many(seconds: float) -> Problem:
    return Problem(
        429,
        "too-many-reads",
        f"other reads kept this one waiting for {seconds:.3g} seconds; try again, "
        "or read less often",
        headers={b"retry-after": b"1"},
    )


def _too_long(seconds: float) -> Problem:
    return Problem(
        503,
        "read-too-long",
        f"this read took longer than {seconds:.3g} seconds; ask for less",
    )
