"""Passes a consumer's messages from task to task."""

import asyncio
from contextlib import suppress
from typing import Generic, TypeVar

from duequeue.consumer.solitude import Caution
from duequeue.consumer.workload import Workload
from duequeue.leased import LeasedMessage
from duequeue.verdict import Verdict

P = TypeVar("P", bound=LeasedMessage)


class AsyncHandover(Generic[P]):
    """The counterpart of `Handover` on one event loop, which needs no lock."""

    def __init__(self, batch: int, caution: Caution[P] | None = None) -> None:
        self.workload: Workload[P] = Workload(batch, caution=caution)
        self._loop = asyncio.get_running_loop()
        self._work = asyncio.Event()
        self._room = asyncio.Event()
        self._unsettled = asyncio.Event()
        self._nothing_runs = asyncio.Event()
        self._stopping = asyncio.Event()
        self._hard = asyncio.Event()
        self._stopped = asyncio.Event()

    def __enter__(self) -> Workload[P]:
        return self.workload

    def __exit__(self, *raised: object) -> None:
        self._wake()

    async def next(self) -> P | None:
        """Return the next message; None once stopping."""
        while not self.workload.stopping:
            if (message := self.workload.take()) is not None:
                if self.workload.room():
                    self._room.set()
                return message
            self._work.clear()
            await self._work.wait()
        return None

    def finish(self, handled: P, verdict: Verdict | None) -> None:
        """Take one message back."""
        self.workload.finish(handled, verdict)
        self._unsettled.set()
        if self.workload.idle:
            self._nothing_runs.set()
        if verdict is None and self.workload.room():
            self._room.set()

    async def await_room(self) -> int:
        """Wait for room, and return how many messages to fetch; 0 once stopping."""
        while not self.workload.stopping:
            if room := self.workload.room():
                return room
            self._room.clear()
            await self._room.wait()
        return 0

    async def await_unsettled(self, seconds: float) -> bool:
        """Wait for a message to settle or for some time; return whether this is the last round."""
        if not (self.workload.last_round or self.workload.unsettled):
            await _wait(self._unsettled, seconds)
        self._unsettled.clear()
        return self.workload.last_round

    def look_again(self) -> None:
        """Go on after another consumer was alone; this may be called on any thread."""
        with suppress(RuntimeError):  # its loop may have ended
            self._loop.call_soon_threadsafe(self._wake)

    def clock_moved(self) -> None:
        """Let the keeper look at its leases at once; this may be called on any thread."""
        self._loop.call_soon_threadsafe(self._unsettled.set)

    async def await_handlers(self, seconds: float) -> None:
        """Wait until no handler runs, time is up, or a hard stop is requested."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not (self.workload.idle or self.workload.hard):
                    self._nothing_runs.clear()
                    await self._nothing_runs.wait()

    async def await_stopped(self) -> None:
        """Wait until the consumer has stopped."""
        await self._stopped.wait()

    async def rest(self, seconds: float) -> None:
        """Let some time pass, or less if a stop begins or becomes hard."""
        await _wait(self._hard if self.workload.stopping else self._stopping, seconds)

    def _wake(self) -> None:
        workload = self.workload
        if workload.stopping:
            self._stopping.set()
        if workload.stopping or workload.waiting:
            self._work.set()
        if workload.stopping or workload.room():
            self._room.set()
        if workload.last_round:
            self._unsettled.set()
        if workload.hard:
            self._nothing_runs.set()
            self._hard.set()
        if workload.stopped:
            self._stopped.set()


async def _wait(event: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
