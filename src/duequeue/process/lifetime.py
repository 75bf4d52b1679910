"""For how long something opened can be used: until it is closed, by the process that opened it."""

import os
from itertools import count

from duequeue.errors import QueueClosed


class Lifetime:
    """That of a queue or a history. A fork has a copy of it, with connections not its own."""

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
        """Raise in a fork."""
        if not self.is_here:
            raise QueueClosed(
                f"{self._owner} was opened before this process was forked: open it again here"
            )

    def begin_closing(self) -> bool:
        """Tell whether it is for this call to close: for the first one, and never in a fork."""
        return self.is_here and next(self._closings) == 0

    def end(self) -> None:
        """Let every later call be refused."""
        self._closed = True
