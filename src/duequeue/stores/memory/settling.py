"""How messages leave the memory store, each with a row of history or without."""

from duequeue.port.history_table import SettledRow
from duequeue.port.store import Lease
from duequeue.settled import Outcome
from duequeue.stores.memory.history_table import MemoryHistory
from duequeue.stores.memory.table import MemoryMessage, MemoryTable


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
