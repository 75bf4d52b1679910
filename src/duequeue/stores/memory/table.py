"""Messages in order of due time, kept in dictionaries and in heaps with lazy cancelling."""

from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import count, islice
from typing import TypeAlias

from duequeue.instants import EARLIEST
from duequeue.port.store import Record, StoredBurial

Place: TypeAlias = tuple[int, int, int]  # instant, message id, serial number of the placing

_SLACK = 64
_burial_numbers = count(1)  # of all tables, so that no two queues share an id


@dataclass(slots=True)
class MemoryMessage:
    """A live message."""

    id: int
    key: str
    payload: bytes
    due_at: int
    asked_at: int
    headers: str | None
    expires_at: int | None
    leased_until: int = EARLIEST
    token: int = 0
    attempt: int = 0
    placing: int = 0


class MemoryTable:
    """The messages of one kind. The caller holds the lock.

    A free entry is in the `waiting` heap by due time, a leased one in `leased` by the end of its
    lease. An item is never searched for to remove it. It counts only while its serial number is
    the entry's latest, and the heaps are rebuilt once most of their items no longer count.
    """

    def __init__(self) -> None:
        self.by_key: dict[str, MemoryMessage] = {}
        self.by_id: dict[int, MemoryMessage] = {}
        self.buried: list[StoredBurial] = []
        self._ids = count(1)
        self._placings = count(1)
        self._waiting: list[Place] = []
        self._leased: list[Place] = []

    def add(self, record: Record) -> None:
        """Insert a new message."""
        key, payload, due_at, headers, _, expires_at = record
        entry = MemoryMessage(next(self._ids), key, payload, due_at, due_at, headers, expires_at)
        self.by_key[entry.key] = self.by_id[entry.id] = entry
        self.place(entry)

    def remove(self, entry: MemoryMessage) -> int:
        """Delete a message and return its id."""
        del self.by_key[entry.key]
        del self.by_id[entry.id]
        self._compact()
        return entry.id

    def clear(self) -> int:
        """Delete every message and return their number."""
        total = len(self.by_key)
        for each in (self.by_key, self.by_id, self._waiting, self._leased):
            each.clear()
        return total

    def bury(self, entry: MemoryMessage, attempts: int, reason: str, now: int) -> None:
        """Copy a message to the buried ones."""
        about = (entry.asked_at, attempts, reason, now, entry.headers, next(_burial_numbers))
        self.buried.append(StoredBurial(entry.key, entry.payload, *about))

    def lease(self, entry: MemoryMessage, until: int) -> int:
        """Set the end of a lease and return the message's id."""
        entry.leased_until = until
        return self.place(entry)

    def reschedule(self, entry: MemoryMessage, due_at: int) -> int:
        """Free a message for a new due time and return its id."""
        entry.due_at, entry.leased_until, entry.token = due_at, EARLIEST, 0
        return self.place(entry)

    def place(self, entry: MemoryMessage) -> int:
        """Put an entry into the heap that its state calls for, and return its id."""
        entry.placing = next(self._placings)
        if entry.leased_until > EARLIEST:
            heappush(self._leased, (entry.leased_until, entry.id, entry.placing))
        else:
            heappush(self._waiting, (entry.due_at, entry.id, entry.placing))
        self._compact()
        return entry.id

    def take_due(self, now: int) -> MemoryMessage | None:
        """Take the earliest claimable entry off the heap; the caller places it again."""
        self._free_ended(now)
        while (entry := self._first(self._waiting)) is not None and entry.due_at <= now:
            heappop(self._waiting)
            if entry.leased_until <= now:
                return entry
            self.place(entry)  # the clock was set back to before the end of its lease
        return None

    def expired(self, limit: int, now: int) -> list[MemoryMessage]:
        """Return expired entries that are due, at most `limit`; the caller leases them."""
        expired = (
            entry
            for entry in self.by_id.values()
            if entry.expires_at is not None and entry.expires_at <= now
            if entry.due_at <= now and entry.leased_until <= now
        )
        return list(islice(expired, limit))

    def earliest_due(self, now: int) -> int | None:
        """Return the earliest due time, past or future, of the entries that nobody holds."""
        self._free_ended(now)
        while (entry := self._first(self._waiting)) is not None and entry.leased_until > now:
            heappop(self._waiting)
            self.place(entry)  # the clock was set back to before the end of its lease
        return entry.due_at if entry else None

    def next_due(self, now: int) -> int | None:
        """Return the earliest due time after now."""
        first = self._first(self._waiting)
        if first is None or first.due_at > now:
            return first.due_at if first else None
        return min((e.due_at for e in self.by_id.values() if e.due_at > now), default=None)

    def _free_ended(self, now: int) -> None:
        while (ended := self._first(self._leased)) is not None and ended.leased_until <= now:
            heappop(self._leased)
            heappush(self._waiting, (ended.due_at, ended.id, ended.placing))

    def _first(self, heap: list[Place]) -> MemoryMessage | None:
        while heap:
            _, entry_id, placing = heap[0]
            entry = self.by_id.get(entry_id)
            if entry is not None and entry.placing == placing:
                return entry
            heappop(heap)
        return None

    def _compact(self) -> None:
        for heap in (self._waiting, self._leased):
            if len(heap) > 2 * len(self.by_id) + _SLACK:
                heap[:] = [place for place in heap if self._counts(place)]
                heapify(heap)

    def _counts(self, place: Place) -> bool:
        entry = self.by_id.get(place[1])
        return entry is not None and entry.placing == place[2]
