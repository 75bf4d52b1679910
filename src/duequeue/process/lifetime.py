"""Until when a queue or a history can be used, and by which process."""

import os
import threading
from collections.abc import Callable
from itertools import count

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
