"""Which of the waiting consumers of a queue looks next, and how long the others sleep."""

import threading
from enum import Enum

NEVER = 2**63 - 1


class Turn(Enum):
    """Why a look is due: a message is expected, or `poll_interval` has passed."""

    EXPECTED = "expected"
    REGULAR = "regular"


class NextLook:
    """When somebody who waits looks next; `at` and all durations are in milliseconds.

    However many wait, one of them takes each look and the others go on waiting.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.at = -NEVER
        self._expecting = False

    def take_turn(self, now: int, poll_interval: int) -> Turn | None:
        """Return why a look is due, if one is; only this caller then takes it."""
        with self._lock:
            if self.at - poll_interval <= now < self.at:
                return None
            turn = Turn.EXPECTED if self._expecting else Turn.REGULAR
            self.at, self._expecting = now + poll_interval, False
            return turn

    def expect(self, due_at: int | None) -> None:
        """Look no later than `due_at`, for a message that was stored or seen for then.

        None means that something may have been stored, so the next regular look is due now.
        """
        with self._lock:
            if due_at is None:
                self.at = -NEVER
            elif due_at < self.at:
                self.at, self._expecting = due_at, True


# Longer waits overflow in some waiting primitives; waking up once an hour costs nothing.
LONGEST_PAUSE = 3600.0


def pause_before_next_look(now: int, next_look: int, time_left: float | None) -> float | None:
    """Return how many seconds to sleep before the next look, or None to give up.

    The arguments are in milliseconds.
    """
    pause: float = max(0, next_look - now)
    if time_left is not None:
        if time_left <= 0:
            return None
        pause = min(pause, time_left)
    return min(pause / 1000, LONGEST_PAUSE)
