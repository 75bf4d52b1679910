"""Who looks next: the waiting consumers of one queue in one process take turns."""

import threading

NEVER = 2**63 - 1


class Lookout:
    """When the next regular look is due; instants and durations in milliseconds.

    However many wait, one of them takes each look and the others go on waiting.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._next_look = -NEVER

    @property
    def next_look(self) -> int:
        """The instant of the next regular look."""
        return self._next_look

    def take_turn(self, now: int, poll_interval: int) -> bool:
        """Tell whether a look is due; if so it is the caller's, and nobody else's."""
        with self._lock:
            if self._next_look - poll_interval <= now < self._next_look:
                return False
            self._next_look = now + poll_interval
            return True

    def looked(self, now: int, poll_interval: int, next_due: int | None) -> None:
        """Note a look at `now` that found nothing, and the next due time it saw."""
        with self._lock:
            self._next_look = min(now + poll_interval, NEVER if next_due is None else next_due)

    def expect(self, due_at: int) -> None:
        """Note a message that was just stored: look no later than it is due."""
        with self._lock:
            self._next_look = min(self._next_look, due_at)
