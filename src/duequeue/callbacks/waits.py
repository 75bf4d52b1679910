"""Waits that end when something changes, when time is over, or when a test moves its clock."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from duequeue.clock import Clock, ManualClock


class Changes:
    """Notes that something has changed, from any thread."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def note(self) -> None:
        """Wake the task that waits, from its own event loop."""
        self._event.set()

    def note_from_anywhere(self, *_: object) -> None:
        """Wake the task that waits, from any thread."""
        with suppress(RuntimeError):  # the loop was closed meanwhile
            self._loop.call_soon_threadsafe(self._event.set)

    async def wait(self, seconds: float | None) -> None:
        """Wait for a change, for at most some seconds; a change since the last wait counts."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._event.wait()
        self._event.clear()

    @contextmanager
    def following(self, clock: Clock) -> Iterator[None]:
        """Count each move of a clock that is moved by hand as a change."""
        undo: Callable[[], None] | None = None
        if isinstance(clock, ManualClock):
            undo = clock.subscribe(self.note_from_anywhere)
        try:
            yield
        finally:
            if undo is not None:
                undo()
