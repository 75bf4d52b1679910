"""The history of the memory store; see `port.history_table.HistoryTable`."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import count

from duequeue.drive.steps import at_once
from duequeue.port.history_table import (
    HOUR,
    BurialReason,
    DayBounds,
    ScheduledHour,
    SettledRow,
    day_of,
)
from duequeue.port.store import Lease
from duequeue.settled import Outcome
from duequeue.stores.memory.table import MemoryMessage, MemoryTable


class MemoryHistory:
    """The rows of one database. The caller holds the lock."""

    def __init__(self) -> None:
        self.rows: list[SettledRow] = []
        self._ids = count(1)

    def add(self, row: SettledRow) -> None:
        """Add a row, under an id that is never used again."""
        self.rows.append(row._replace(id=next(self._ids)))

    def forget(self, kind: str, before: int) -> None:
        """Delete the rows of a kind that were settled before an instant."""
        self.rows[:] = [row for row in self.rows if row.kind != kind or row.settled_at >= before]

    def newest(self, kind: str, limit: int, key: str | None) -> list[SettledRow]:
        """Return rows of a kind, or of one of its keys, the one settled last first."""
        rows = [row for row in self.rows if row.kind == kind and key in {None, row.key}]
        return sorted(rows, key=lambda row: (row.settled_at, row.id), reverse=True)[:limit]


class MemoryHistoryTable:
    """The records of the settled messages of every kind in this process."""

    def __init__(self, history: MemoryHistory, by_kind: Mapping[str, MemoryTable]) -> None:
        self._history = history
        self._by_kind = by_kind

    @at_once
    def days(self) -> list[tuple[int, str]]:
        """Walk over all rows."""
        return sorted({(day_of(row.settled_at), row.kind) for row in self._history.rows})

    @at_once
    def day_bounds(self, day: int) -> DayBounds:
        """Walk over all rows."""
        return self._bounds(day)

    @at_once
    def day_rows(self, day: int, after_id: int, until_id: int, limit: int) -> list[SettledRow]:
        """Walk over all rows."""
        return [row for row in self._of(day) if after_id < row.id <= until_id][:limit]

    @at_once
    def remove_day(self, day: int, bounds: DayBounds) -> bool:
        """Keep only the rows of the other days."""
        if not bounds.cover(self._bounds(day)):
            return False
        others = [row for row in self._history.rows if day_of(row.settled_at) != day]
        self._history.rows[:] = others
        return True

    @at_once
    def remove_rows(self, day: int, bounds: DayBounds) -> bool:
        """Keep only the rows of other days and with other ids."""
        ids = [row.id for row in self._of(day) if bounds.first_id <= row.id <= bounds.last_id]
        if not ids or DayBounds(ids[0], ids[-1], len(ids)) != bounds:
            return bounds.rows == 0
        gone = set(ids)
        self._history.rows[:] = [row for row in self._history.rows if row.id not in gone]
        return True

    @at_once
    def burial_reasons(self, since: int, limit: int) -> list[BurialReason]:
        """Walk over all burials."""
        instants: dict[tuple[str, str], list[int]] = defaultdict(list)
        for kind, table in self._by_kind.items():
            for buried in table.buried.values():
                if buried.buried_at >= since:
                    instants[kind, buried.reason].append(buried.buried_at)
        found = [BurialReason(*of, len(at), max(at)) for of, at in sorted(instants.items())]
        return sorted(found, key=lambda row: (-row.burials, -row.last_at))[:limit]

    @at_once
    def scheduled(self, now: int, until: int) -> list[ScheduledHour]:
        """Walk over all messages."""
        hours: dict[tuple[int, str], list[int]] = defaultdict(list)
        for kind, table in self._by_kind.items():
            for message in table.by_key.values():
                if message.due_at < until:
                    at = max(message.due_at, now)
                    hours[at - at % HOUR, kind].append(message.due_at)
        return [
            ScheduledHour(kind, hour, len(due), sum(at <= now for at in due))
            for (hour, kind), due in sorted(hours.items())
        ]

    def _of(self, day: int) -> Iterator[SettledRow]:
        return (row for row in self._history.rows if day_of(row.settled_at) == day)

    def _bounds(self, day: int) -> DayBounds:
        ids = [row.id for row in self._of(day)]
        return DayBounds(min(ids, default=0), max(ids, default=0), len(ids))


class MemorySettling:
    """Settles messages of one kind, and adds them to the history if it `keeps` one."""

    def __init__(
        self, kind: str, table: MemoryTable, history: MemoryHistory, *, keeps: bool
    ) -> None:
        self._kind = kind
        self._table = table
        self._history = history
        self._keeps = keeps

    def ack(self, entry: MemoryMessage, lease: Lease, now: int) -> int:
        """Remove a message, and return its id."""
        self._keep(entry, Outcome.ACKED, now, lease, entry.attempt)
        return self._table.remove(entry)

    def bury(self, entry: MemoryMessage, lease: Lease, attempts: int, now: int) -> int:
        """Remove a message of which the caller has a copy, and return its id."""
        self._keep(entry, Outcome.BURIED, now, lease, attempts)
        return self._table.remove(entry)

    def expire(self, entry: MemoryMessage, attempts: int, now: int) -> int:
        """Remove a message that has expired, and return its id."""
        self._keep(entry, Outcome.EXPIRED, now, None, attempts)
        return self._table.remove(entry)

    def drop(self, entry: MemoryMessage, now: int) -> int:
        """Remove a message, and return its id."""
        self._keep(entry, Outcome.DROPPED, now, None, entry.attempt)
        return self._table.remove(entry)

    def drop_all(self, now: int) -> int:
        """Remove all messages, and count them."""
        for entry in self._table.by_key.values():
            self._keep(entry, Outcome.DROPPED, now, None, entry.attempt)
        return self._table.clear()

    def replace(self, entry: MemoryMessage, now: int) -> None:
        """Add a row for a message that the caller is about to change."""
        self._keep(entry, Outcome.REPLACED, now, None, entry.attempt)

    def forget_before(self, before: int) -> None:
        """Delete the rows of this kind that were settled before an instant."""
        self._history.forget(self._kind, before)

    def newest(self, limit: int, key: str | None) -> list[SettledRow]:
        """Return the rows of this kind, or of one of its keys, the one settled last first."""
        return self._history.newest(self._kind, limit, key)

    def _keep(
        self,
        entry: MemoryMessage,
        outcome: Outcome,
        now: int,
        lease: Lease | None,
        attempts: int,
    ) -> None:
        if self._keeps:
            row = SettledRow(
                id=0,
                kind=self._kind,
                key=entry.key,
                asked_at=entry.asked_at,
                delivered_at=None if lease is None else lease.delivered_at,
                settled_at=now,
                attempts=attempts,
                outcome=outcome.value,
                handler_ms=None if lease is None else lease.handler_ms,
            )
            self._history.add(row)
