"""The history of the SQL stores; see `port.history_table.HistoryTable`."""

import threading

from duequeue.port.history_table import (
    DAY,
    BurialReason,
    DayBounds,
    HistorySteps,
    ScheduledHour,
    SettledRow,
)
from duequeue.port.store import Steps
from duequeue.stores.sql.commands import BEGIN, Execute, Query, Row


class SqlHistoryTable:
    """The records of the settled messages of every kind in an SQL database."""

    def days(self) -> HistorySteps[list[tuple[int, str]]]:
        """Jump from day to day in the index."""
        rows: list[Row] = yield Query("list_history_days")
        return [(day, kind) for day, kind in rows]

    def day_bounds(self, day: int) -> HistorySteps[DayBounds]:
        """Count in one scan of the day."""
        rows: list[Row] = yield Query("bound_history_day", {"day": day})
        return DayBounds(*rows[0])

    def day_rows(
        self, day: int, after_id: int, until_id: int, limit: int
    ) -> HistorySteps[list[SettledRow]]:
        """Read a range of ids."""
        between = {"after_id": after_id, "until_id": until_id, "limit": limit}
        rows: list[Row] = yield Query("read_history_day", {"day": day, **between})
        return list(map(SettledRow._make, rows))

    def remove_day(self, day: int, bounds: DayBounds) -> HistorySteps[bool]:
        """Check under a lock that no rows have come late, then remove the day."""
        yield BEGIN
        yield Query("lock_history_day", {"day": day})
        found = yield from self.day_bounds(day)
        if not bounds.cover(found):
            return False
        yield Query("remove_history_day", {"day": day})
        return True

    def remove_rows(self, day: int, bounds: DayBounds) -> HistorySteps[bool]:
        """Count and remove in one statement."""
        removed: int = yield Execute("remove_history_rows", {"day": day, **bounds._asdict()})
        return removed == bounds.rows

    def burial_reasons(self, since: int, limit: int) -> HistorySteps[list[BurialReason]]:
        """Count in one scan of the burials since then."""
        rows: list[Row] = yield Query("count_burial_reasons", {"since": since, "limit": limit})
        return [BurialReason(*row) for row in rows]

    def scheduled(self, now: int, until: int) -> HistorySteps[list[ScheduledHour]]:
        """Count in one scan of all messages that are due before `until`."""
        rows: list[Row] = yield Query("count_scheduled", {"now": now, "until": until})
        return [ScheduledHour(*row) for row in rows]


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
