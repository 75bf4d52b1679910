"""How late messages came, counted in a fixed number of classes, so that counting does not grow."""

import threading
from bisect import bisect_left
from datetime import timedelta

# Milliseconds, each class a quarter wider than the one before, up to a quarter of an hour.
LIMITS = [0.1 * 1.25**step for step in range(72)]
MILLISECOND = timedelta(milliseconds=1)


class Lateness:
    """The messages of one interval; safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = [0] * (len(LIMITS) + 1)

    def add(self, late: timedelta) -> None:
        """Count a message."""
        at = bisect_left(LIMITS, late / MILLISECOND)
        with self._lock:
            self._counts[at] += 1

    def take(self) -> tuple[int, float, float]:
        """Return the number of messages, their median and 99th percentile, and start over."""
        with self._lock:
            counts, self._counts = self._counts, [0] * len(self._counts)
        return sum(counts), _percentile(counts, 0.5), _percentile(counts, 0.99)


def _percentile(counts: list[int], share: float) -> float:
    """Return the upper limit of the class in which this share of the messages is reached."""
    wanted, seen = share * sum(counts), 0
    for limit, count in zip([*LIMITS, float("inf")], counts, strict=True):
        seen += count
        if seen >= wanted and seen:
            return limit
    return 0.0
