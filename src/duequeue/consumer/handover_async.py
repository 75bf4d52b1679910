"""What a consumer has in hand, passed on from task to task."""

import asyncio
from contextlib import suppress
from typing import Generic, TypeVar

from duequeue.consumer.workload import Done, Workload
from duequeue.leased import LeasedMessage
from duequeue.verdict import Verdict

P = TypeVar("P", bound=LeasedMessage)  # type: ignore[type-arg] # any payload


class AsyncHandover(Generic[P]):
    """The same as `Handover`, on one event loop, and without a lock."""

    def __init__(self, batch: int) -> None:
        self._load: Workload[P] = Workload(batch)
        self._loop = asyncio.get_running_loop()
        self._work = asyncio.Event()
        self._room = asyncio.Event()
        self._unsettled = asyncio.Event()
        self._nothing_runs = asyncio.Event()
        self._last_round = False
        self.stopping = False

    @property
    def in_hand(self) -> int:
        """How many messages are fetched, running, or not settled yet."""
        return self._load.in_hand

    # The feeder's.

    async def await_room(self) -> int:
        """Wait for room, and return how many messages to fetch; 0 once stopping."""
        while not self.stopping:
            if room := self._load.room():
                return room
            self._room.clear()
            await self._room.wait()
        return 0

    def add(self, fetched: list[P], room: int) -> None:
        """Take in what was fetched into that room."""
        self._load.add(fetched, room)
        self._work.set()

    # The workers'.

    async def next(self) -> P | None:
        """Hand out the next message; None once stopping."""
        while not self.stopping:
            if (message := self._load.take()) is not None:
                if self._load.room():
                    self._room.set()
                return message
            self._work.clear()
            await self._work.wait()
        return None

    def finish(self, handled: P, verdict: Verdict | None) -> None:
        """Take one message back."""
        self._load.finish(handled, verdict)
        self._unsettled.set()
        if self._load.idle:
            self._nothing_runs.set()

    # The keeper's.

    async def await_unsettled(self, seconds: float) -> bool:
        """Wait for something to settle, or for so long; tell whether it is for the last time."""
        if not (self._last_round or self._load.unsettled):
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._unsettled.wait()
        self._unsettled.clear()
        return self._last_round

    def clock_moved(self) -> None:
        """Let the keeper look at its leases at once; called from any thread."""
        self._loop.call_soon_threadsafe(self._unsettled.set)

    def take_done(self) -> list[Done[P]]:
        """Hand over what is to be settled."""
        return self._load.take_done()

    def settled(self, group: list[Done[P]], *, done: bool) -> None:
        """Make room for others; what could not be settled comes back."""
        self._load.settled(group, done=done)
        self._room.set()

    def held(self) -> list[P]:
        """Return what must not lose its lease."""
        return self._load.held()

    def lose(self, lost: list[P]) -> None:
        """Mark messages whose leases are gone, and do not begin them: there is room for others."""
        self._load.lose(lost)
        self._room.set()

    # What stopping takes.

    def stop(self) -> bool:
        """Hand out nothing more; tell whether this is the first call."""
        first, self.stopping = not self.stopping, True
        self._wake_all()
        return first

    def end(self) -> None:
        """Stop, with nothing left to settle on."""
        self.stopping = self._last_round = True
        self._wake_all()

    def take_waiting(self) -> list[P]:
        """Hand over what nobody has begun to handle."""
        return self._load.take_waiting()

    async def await_handlers(self, seconds: float, hard: asyncio.Event) -> None:
        """Wait until nothing runs, but not for longer, nor once it is to be hard."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not self._load.idle and not hard.is_set():
                    self._nothing_runs.clear()
                    await self._nothing_runs.wait()

    def give_up_running(self) -> list[P]:
        """Take away what still runs; the keeper settles for the last time."""
        overdue = self._load.take_running()
        self._last_round = True
        self._wake_all()
        return overdue

    def _wake_all(self) -> None:
        for event in (self._work, self._room, self._unsettled, self._nothing_runs):
            event.set()
