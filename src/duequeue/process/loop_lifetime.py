"""How long an asynchronous queue can be used, and in which event loop."""

import asyncio
import os
from collections.abc import Callable, Coroutine
from typing import Any

from duequeue.errors import QueueClosed
from duequeue.process.lifetime import Lifetime


class LoopLifetime(Lifetime):
    """Lasts until its owner is closed, in the process and the event loop that opened it.

    The connections and locks of an event loop do not work in another one.
    """

    def __init__(self, owner: str) -> None:
        super().__init__(owner)
        self._loop = _running_loop()
        self._closing: asyncio.Task[None] | None = None  # the event loop holds tasks only weakly

    def check(self) -> None:
        """Raise unless it can be used here and now."""
        if self._closed or os.getpid() != self._process:
            super().check()
        self._check_loop()

    def begin_closing(self) -> bool:
        """Return True only to the first caller, and only where it was opened."""
        if self.is_here and not self._closed:
            self._check_loop()
        return super().begin_closing()

    async def finish_async(
        self, close: Callable[[], Coroutine[Any, Any, None]], *, apart: bool
    ) -> None:
        """Close the owner in a task, which goes on if the caller is cancelled.

        The task is not awaited if it has to wait for the caller.
        """
        self._closing = asyncio.create_task(close())
        if not apart:
            await asyncio.shield(self._closing)

    def _check_loop(self) -> None:
        running = _running_loop()
        if self._loop is None:  # a caller's transaction may begin before its loop runs
            self._loop = running
        elif running is not None and running is not self._loop:
            raise QueueClosed(
                f"{self._owner} was opened in another event loop; open it again in this one"
            )


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
