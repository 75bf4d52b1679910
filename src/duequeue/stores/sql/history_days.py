"""The days that the history has room for, as far as this process knows."""

import threading
from collections.abc import Iterable


class HistoryDays:
    """Shared by the queues of one process on one database; safe from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: frozenset[int] = frozenset()

    def __contains__(self, day: int) -> bool:
        return day in self._known

    def add(self, days: Iterable[int]) -> None:
        """Note days that there is room for."""
        with self._lock:
            self._known |= frozenset(days)

    def forget(self) -> None:
        """Know nothing any more: something is not as it was."""
        with self._lock:
            self._known = frozenset()
