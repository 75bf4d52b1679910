"""Until when a queue or a history can be used, by which process, and in which event loop."""

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from itertools import count
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self

from duequeue.errors import QueueClosed


class Lifetime:
    """Lasts until its owner is closed, and only in the process that opened it.

    A fork has a copy of the owner, whose connections still belong to the parent process.
    """

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._process = os.getpid()
        self._closings = count()
        self._closed = False

    @property
    def is_here(self) -> bool:
        """Whether this is the process that opened it."""
        return os.getpid() == self._process

    def check(self) -> None:
        """Raise unless it can be used here and now."""
        if self._closed:
            raise QueueClosed(f"{self._owner} is closed")
        if os.getpid() != self._process:
            self.check_process()

    def check_process(self) -> None:
        """Raise if this process is a fork of the one that opened it."""
        if not self.is_here:
            raise QueueClosed(
                f"{self._owner} was opened before this process was forked; open it again here"
            )

    def begin_closing(self) -> bool:
        """Return True only to the first caller, and only in the process that opened it."""
        return self.is_here and next(self._closings) == 0

    def finish(self, close: Callable[[], None], *, apart: bool) -> None:
        """Close the owner, on a thread of its own if it has to wait for the caller."""
        if apart:
            threading.Thread(target=close, name="duequeue-close", daemon=False).start()
        else:
            close()

    def end(self) -> None:
        """Refuse every later call."""
        self._closed = True


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


class Closing:
    """Closes itself at the end of a `with` block, however the block ends."""

    def close(self) -> None:
        """Release all resources; closing twice is fine."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # Type checkers do not see these methods, so that they report the mistake themselves.
    if not TYPE_CHECKING:

        async def __aenter__(self) -> NoReturn:
            name = type(self).__name__
            raise TypeError(f"enter a {name} with `with`, because it blocks, not with `async with`")

        async def __aexit__(self, *_: object) -> None:
            """Do nothing; Python looks for this method before it enters the block."""


class AsyncClosing:
    """Closes itself at the end of an `async with` block, however the block ends."""

    async def close(self) -> None:
        """Release all resources; closing twice is fine."""
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    # Type checkers do not see these methods, so that they report the mistake themselves.
    if not TYPE_CHECKING:

        def __enter__(self) -> NoReturn:
            name = type(self).__name__
            raise TypeError(f"enter an {name} with `async with`, not with `with`")

        def __exit__(self, *_: object) -> None:
            """Do nothing; Python looks for this method before it enters the block."""


class OnlyOpened:
    """A class that cannot be called, and whose objects can be neither pickled nor copied."""

    def __new__(cls, *parts: object, **options: object) -> Self:
        """Refuse the arguments that users pass to `open`; `open` passes three or four parts."""
        if len(parts) not in {3, 4} or isinstance(parts[0], str) or options:
            raise TypeError(f"use {cls.__name__}.open(url, name), with the same options")
        return super().__new__(cls)

    def __reduce__(self) -> NoReturn:
        """Refuse `pickle` and `copy`."""
        name = type(self).__name__
        raise TypeError(
            f"{name} cannot be pickled or copied, because its connections belong to the process "
            f"that opened it; use {name}.open in each process"
        )
