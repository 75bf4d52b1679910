"""How many messages wait for a stream, for its progress and for `minMessagesPerTrigger`."""

from collections.abc import Callable
from time import monotonic
from typing import Any

from duequeue.port.bulk import Backlog

# An exact number above this is not worth the time to count it.
MOST_COUNTED = 1_000_000
COUNT_SECONDS = 10.0
# A count may take a fiftieth of the time, so a slow one is repeated less often.
PAUSE_PER_COUNT = 50

# Counts the messages that wait, up to a number.
Count = Callable[[int], Backlog]


class BacklogReport:
    """The backlog as it was counted last, and how late its first message was then."""

    def __init__(self, count: Count, now: Callable[[], int]) -> None:
        self._count = count
        self._now = now
        self._count_at = 0.0
        self.figures: dict[str, Any] = {}

    def refresh(self) -> None:
        """Count again if the last count is old."""
        began = monotonic()
        if began < self._count_at:
            return
        found = self._count(MOST_COUNTED)
        now = self._now()
        oldest = now if found.oldest_due_at is None else found.oldest_due_at
        self.figures = {"backlog": found.messages, "lagMillis": max(0, now - oldest)}
        ended = monotonic()
        self._count_at = ended + max(COUNT_SECONDS, PAUSE_PER_COUNT * (ended - began))


class Admission:
    """Holds a trigger back until enough messages wait, but no longer than a delay."""

    def __init__(self, least: int, delay_millis: int) -> None:
        self._least = least
        self._delay = delay_millis / 1000
        self._waits_since = monotonic()

    def admits(self, count: Count) -> bool:
        """Return whether the next batch may be leased; the delay starts again after each one."""
        if self._least > 1 and monotonic() < self._waits_since + self._delay:
            return count(self._least).messages >= self._least
        return True

    def leased(self) -> None:
        """Note that a batch was leased."""
        self._waits_since = monotonic()
