"""An event loop whose time a test can move ahead, so that no test waits for a pause to end."""

import asyncio
from datetime import UTC, datetime, timedelta


class MovableLoop(asyncio.SelectorEventLoop):
    """An event loop whose time goes on by itself, and jumps when a test says so."""

    ahead = 0.0

    def time(self) -> float:
        return super().time() + self.ahead


class ClockOfLoop:
    """A clock that jumps with its loop. Unlike a `ManualClock`, it wakes nobody."""

    def __init__(self, loop: MovableLoop) -> None:
        self._loop = loop

    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=self._loop.ahead)


async def let_pass(seconds: float) -> None:
    """Move the time of the running loop ahead."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, MovableLoop)
    loop.ahead += seconds
