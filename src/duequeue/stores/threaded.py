"""Blocking sessions, made awaitable for the event loop."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from math import inf
from time import monotonic
from typing import TypeVar

from duequeue.errors import StoreBusy
from duequeue.port.store import Operation, Session

T = TypeVar("T")


class ThreadedSession:
    """Runs a blocking session on a thread, one operation at a time."""

    def __init__(self, session: Session) -> None:
        self.blocking = session
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="duequeue")

    async def run(
        self, operation: Operation[T], seconds: float = inf, *, consumes: bool = False
    ) -> T:
        """Run one operation; a cancelled caller still waits for an operation that has begun."""
        ends_at = monotonic() + seconds
        in_time = partial(self._run_in_time, operation, ends_at, consumes=consumes)
        running = self._thread.submit(in_time)
        outcome = asyncio.wrap_future(running)
        try:
            return await asyncio.shield(outcome)
        except asyncio.CancelledError:
            if not running.cancel():
                await asyncio.wait([outcome])
                outcome.exception()  # nobody else will look at it
            raise

    async def close(self) -> None:
        """Close the session once the running operation has ended."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._thread, self.blocking.close)
        self._thread.shutdown()

    def _run_in_time(self, operation: Operation[T], ends_at: float, *, consumes: bool) -> T:
        left = ends_at - monotonic()
        if left <= 0:
            raise StoreBusy("other operations kept the store busy for too long")
        return self.blocking.run(operation, left, consumes=consumes)


class InlineSession:
    """Runs a blocking session on the event loop itself; for operations of microseconds."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def run(
        self, operation: Operation[T], seconds: float = inf, *, consumes: bool = False
    ) -> T:
        """Run one operation."""
        return self._session.run(operation, seconds, consumes=consumes)

    async def close(self) -> None:
        """Close the session."""
        self._session.close()
