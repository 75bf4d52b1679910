"""Which polls of this process look or wait, and for which wake-ups nobody has looked yet.

A wake-up goes to one process. If the last poll there leaves before it has looked, for instance
because it is cancelled, the wake-up has to go to another process.
"""

import threading
from collections import defaultdict
from collections.abc import Callable
from types import TracebackType
from typing import TypeAlias
from weakref import WeakSet

# Wakes another process.
PassOn: TypeAlias = Callable[[], None]


class Waits:
    """The polls of one process that look or wait, by queue."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # A poll that is interrupted before it can leave has left when it is collected as garbage.
        self._polls: defaultdict[str, WeakSet[Wait]] = defaultdict(WeakSet)
        self._owed: set[str] = set()

    def block(self, kind: str, pass_on: PassOn) -> "Wait":
        """Return a block in which one poll looks and waits."""
        return Wait(self, kind, pass_on)

    def any(self, kind: str) -> bool:
        """Return whether somebody looks or waits here."""
        with self._lock:
            return bool(self._polls.get(kind))

    def wake(self, kind: str) -> bool:
        """Note a wake-up for this process, or its own offer; return False if nobody waits here."""
        with self._lock:
            if not self._polls.get(kind):
                return False
            self._owed.add(kind)
            return True

    def look(self, kind: str) -> bool:
        """Note that somebody is about to look; return whether a wake-up waited for that.

        If the look fails, `wake` notes it again.
        """
        with self._lock:
            return self._take_owed(kind)

    def forget(self, kind: str) -> bool:
        """Forget a queue that was closed; return whether a wake-up still waits for a look."""
        with self._lock:
            self._polls.pop(kind, None)
            return self._take_owed(kind)

    def add(self, kind: str, poll: "Wait") -> None:
        """Note a poll."""
        with self._lock:
            self._polls[kind].add(poll)

    def remove(self, kind: str, poll: "Wait") -> bool:
        """Forget a poll; if it was the last, return whether a wake-up still waits for a look."""
        with self._lock:
            polls = self._polls.get(kind, WeakSet())
            polls.discard(poll)
            return not polls and self._take_owed(kind)

    def _take_owed(self, kind: str) -> bool:
        is_owed = kind in self._owed
        self._owed.discard(kind)
        return is_owed


class Wait:
    """One poll, from the beginning to the end of a block."""

    def __init__(self, waits: Waits, kind: str, pass_on: PassOn) -> None:
        self._waits = waits
        self._kind = kind
        self._pass_on = pass_on

    def __enter__(self) -> None:
        """Count as a poll that waits."""
        self._waits.add(self._kind, self)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Leave, whatever was found or raised."""
        if self._waits.remove(self._kind, self):
            self._pass_on()
