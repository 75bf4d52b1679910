"""How many messages wait for a stream, for its progress and for `minMessagesPerTrigger`."""

import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from time import monotonic
from typing import Any

from duequeue.bulk.port import Backlog
from duequeue.errors import QueueClosed

# An exact number above this is not worth the time to count it.
MOST_COUNTED = 1_000_000
COUNT_SECONDS = 10.0
# A count may take a fiftieth of the time, so a slow one is repeated less often.
PAUSE_PER_COUNT = 50
# A trigger waits no longer than this for a count, which may also appear in a later progress.
MOMENT_SECONDS = 0.5

# Counts the messages that wait, up to a number.
Count = Callable[[int], Backlog]

logger = logging.getLogger("duequeue.spark")


class BacklogReport:
    """The backlog as it was counted last, and how late its first message was then.

    It is counted on a thread of its own, so a trigger neither fails with it nor waits long for it.
    """

    def __init__(self, count: Count, now: Callable[[], int]) -> None:
        self._count = count
        self._now = now
        self._count_at = 0.0
        self._thread = ThreadPoolExecutor(1, "duequeue-backlog")
        self._counting: Future[None] | None = None
        self.figures: dict[str, Any] = {}

    def refresh(self) -> None:
        """Count again if the last count is old."""
        if self._counting is None and monotonic() >= self._count_at:
            self._counting = self._thread.submit(self._measure)
        if self._counting is not None and wait([self._counting], MOMENT_SECONDS).done:
            self._counting = None

    def close(self) -> None:
        """Count no more."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _measure(self) -> None:
        began = monotonic()
        try:
            found = self._count(MOST_COUNTED)
            now = self._now()
            oldest = now if found.oldest_due_at is None else found.oldest_due_at
            self.figures = {"backlog": found.messages, "lagMillis": max(0, now - oldest)}
        except QueueClosed:
            return
        except Exception as error:  # noqa: BLE001 - a query must not fail because of a statistic
            logger.warning("could not count the backlog: %s", error)
        ended = monotonic()
        self._count_at = ended + max(COUNT_SECONDS, PAUSE_PER_COUNT * (ended - began))


class Admission:
    """Holds a trigger back until enough messages wait, but no longer than a delay."""

    def __init__(self, least: int, delay_millis: int) -> None:
        self._least = least
        self._delay = delay_millis / 1000
        self._waits_since = monotonic()
        self._count_at = 0.0

    def admits(self, count: Count) -> bool:
        """Return whether the next batch may be leased; the delay starts again after each one."""
        if self._least <= 1 or monotonic() >= self._waits_since + self._delay:
            return True
        return monotonic() >= self._count_at and self._finds_enough(count)

    def leased(self) -> None:
        """Note that a batch was leased."""
        self._waits_since = monotonic()

    def _finds_enough(self, count: Count) -> bool:
        """Count, and pause if too few wait; otherwise a batch follows, which takes longer."""
        began = monotonic()
        enough = count(self._least).messages >= self._least
        ended = monotonic()
        self._count_at = ended + (0 if enough else PAUSE_PER_COUNT * (ended - began))
        return enough
