"""Which days the history has room for; on PostgreSQL, each day is a partition."""

import threading

from duequeue.port.history_table import DAY
from duequeue.port.store import Steps
from duequeue.stores.sql.commands import Query


class HistoryDays:
    """The days for which the history is known to have room.

    The queues of one process on one database share them; they are safe to use from many threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: frozenset[int] = frozenset()

    def __contains__(self, day: int) -> bool:
        return day in self._known

    def make_room(self, today: int) -> Steps[None]:
        """Create today and tomorrow, unless today is known to be there."""
        if today in self._known:
            return
        for day in (today, today + DAY):
            yield Query("add_history_day", {"day": day})
        with self._lock:
            self._known |= {today, today + DAY}

    def forget(self) -> None:
        """Forget all days, because one of them turned out to be missing."""
        with self._lock:
            self._known = frozenset()
