"""For how long a queue can be used: until it is closed, and in the process that opened it."""

import os
from itertools import count

from duequeue.errors import QueueClosed


class Lifetime:
    """That of one queue. A forked process has a copy of it, whose connections are not its own."""

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._process = os.getpid()
        self._closings = count()
        self._over = False

    def check(self) -> None:
        """Raise unless the queue can be used here and now."""
        if self._over:
            raise QueueClosed(f"{self._owner} is closed")
        if os.getpid() != self._process:
            raise QueueClosed(
                f"{self._owner} was opened before this process was forked: open it again here"
            )

    def begins_to_end(self) -> bool:
        """Whether it is for this call to close: the first one does, and never that of a fork."""
        return os.getpid() == self._process and next(self._closings) == 0

    def end(self) -> None:
        """Let every later call be refused."""
        self._over = True
