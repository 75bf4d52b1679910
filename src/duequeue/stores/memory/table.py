"""Messages in order of due time, kept in a dictionary and in two timers, and their responses."""

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from duequeue.instants import EARLIEST
from duequeue.port.burial_table import StoredBurial
from duequeue.port.listing import BurialId
from duequeue.port.store import Record, StoredResponse
from duequeue.timers import (
    Handle,
    HashedWheel,
    HeapTimer,
    HierarchicalWheel,
    SimpleWheel,
    SortedHashedWheel,
    Timer,
)

# An expiry stays in the heap after its response is gone. If more than so many do, and most of the
# heap, it is built anew.
_MOST_STALE = 100

_burial_numbers = count(1)  # of all tables, so that no two queues share an id

T = TypeVar("T")

DEFAULT_TIMER = "heap"


class _Kept(NamedTuple):
    response: StoredResponse
    expires_at: int


class MemoryResponses:
    """The responses by key, and a heap of when they expire. The caller holds the lock."""

    def __init__(self) -> None:
        self._by_key: dict[str, _Kept] = {}
        self._expiries: list[tuple[int, str]] = []

    def put(self, key: str, response: StoredResponse, expires_at: int, now: int) -> None:
        """Store a response in place of an older one, and delete those that have expired."""
        self._by_key[key] = _Kept(response, expires_at)
        heappush(self._expiries, (expires_at, key))
        while self._expiries and self._expiries[0][0] <= now:
            expired_at, expired = heappop(self._expiries)
            kept = self._by_key.get(expired)
            if kept is not None and kept.expires_at == expired_at:
                del self._by_key[expired]
        if len(self._expiries) > 2 * len(self._by_key) + _MOST_STALE:
            self._expiries = [(kept.expires_at, key) for key, kept in self._by_key.items()]
            heapify(self._expiries)

    def find(self, key: str, now: int) -> StoredResponse | None:
        """Return the response of a key that has not expired."""
        kept = self._by_key.get(key)
        return kept.response if kept is not None and kept.expires_at > now else None

    def forget(self, key: str) -> None:
        """Delete the response of a key, if there is one."""
        self._by_key.pop(key, None)

    def clear(self) -> None:
        """Delete every response."""
        self._by_key.clear()
        self._expiries.clear()


@dataclass(slots=True, eq=False)
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
    timer: "Timer[MemoryMessage] | None" = None
    handle: Handle = 0


MakeTimer: TypeAlias = Callable[[], Timer[MemoryMessage]]


class MemoryTable:
    """The messages of one kind. The caller holds the lock.

    A free message is in the timer `_waiting` until it is due, and a leased one is in `_leased`
    until its lease ends. A message that comes back to `_waiting` goes to its old place in due
    order, because its rank there is its id.
    """

    def __init__(self, make_timer: MakeTimer = HeapTimer) -> None:
        self.by_key: dict[str, MemoryMessage] = {}
        self.buried: dict[BurialId, StoredBurial] = {}
        self.responses = MemoryResponses()
        self._make_timer = make_timer
        self._waiting, self._leased = make_timer(), make_timer()
        self._ids = count(1)
        self._latest = EARLIEST

    def add(self, record: Record) -> None:
        """Insert a new message, which makes the response to an earlier one void."""
        key, payload, due_at, headers, _, expires_at = record
        entry = MemoryMessage(next(self._ids), key, payload, due_at, due_at, headers, expires_at)
        self.by_key[entry.key] = entry
        self.responses.forget(key)
        self.place(entry)

    def remove(self, entry: MemoryMessage) -> int:
        """Delete a message and return its id."""
        del self.by_key[entry.key]
        self._withdraw(entry)
        return entry.id

    def clear(self) -> int:
        """Delete every message and return their number."""
        total = len(self.by_key)
        self.by_key.clear()
        self._waiting, self._leased = self._make_timer(), self._make_timer()
        return total

    def rebuild(self) -> None:
        """Fill new timers, because an interrupt may have left the old ones in any state."""
        self._waiting, self._leased = self._make_timer(), self._make_timer()
        for entry in self.by_key.values():
            entry.timer = None
            self.place(entry)

    def bury(self, entry: MemoryMessage, attempts: int, reason: str, now: int) -> None:
        """Copy a message to the buried ones."""
        burial = BurialId(now, next(_burial_numbers))
        about = (entry.asked_at, attempts, reason, now, entry.headers, burial.number)
        self.buried[burial] = StoredBurial(entry.key, entry.payload, *about)

    def lease(self, entry: MemoryMessage, until: int) -> int:
        """Set the end of a lease and return the message's id."""
        entry.leased_until = until
        return self.place(entry)

    def reschedule(self, entry: MemoryMessage, due_at: int) -> int:
        """Free a message for a new due time and return its id."""
        entry.due_at, entry.leased_until, entry.token = due_at, EARLIEST, 0
        return self.place(entry)

    def place(self, entry: MemoryMessage) -> int:
        """Put an entry into the timer that its state calls for, and return its id."""
        self._withdraw(entry)
        if entry.leased_until > EARLIEST:
            self._schedule(entry, self._leased, entry.leased_until)
        else:
            self._schedule(entry, self._waiting, entry.due_at)
        return entry.id

    def take_due(self, now: int) -> MemoryMessage | None:
        """Return the earliest claimable entry; the caller leases it."""
        self._free_ended(now)
        while (found := self._waiting.first(now)) is not None:
            entry = found[1]
            if entry.leased_until <= now:
                return entry
            self.place(entry)  # the clock was set back to before the end of its lease
        return None

    def expired(self, limit: int, now: int) -> list[MemoryMessage]:
        """Return the expired entries among the `limit` that are due first; the caller leases them.

        The others are taken out to get to those behind them, and put back.
        """
        due: list[MemoryMessage] = []
        while len(due) < limit and (entry := self.take_due(now)) is not None:
            self._withdraw(entry)
            due.append(entry)
        for entry in due:
            self.place(entry)
        return [each for each in due if each.expires_at is not None and each.expires_at <= now]

    def earliest_due(self, now: int) -> int | None:
        """Return the earliest due time, past or future, of the entries that nobody holds."""
        self._free_ended(now)
        while (due_at := self._waiting.next_due()) is not None:
            # Looking at an entry before it is due moves a timer ahead of the clock. So this is done
            # only after a clock was set back, when leases that had ended may not have ended yet.
            found = self._waiting.first(due_at) if now < self._latest else None
            if found is None or found[1].leased_until <= now:
                return due_at
            self.place(found[1])
        return None

    def next_due(self, now: int) -> int | None:
        """Return the earliest due time after now."""
        # These are few or none, because a poll asks only when it has found nothing.
        due = self._waiting.advance(now)
        following = self._waiting.next_due()
        for entry in due:
            self._schedule(entry, self._waiting, entry.due_at)
        return following

    def _free_ended(self, now: int) -> None:
        self._latest = max(self._latest, now)
        for entry in self._leased.advance(now):
            self._schedule(entry, self._waiting, entry.due_at)

    def _schedule(self, entry: MemoryMessage, timer: Timer[MemoryMessage], at: int) -> None:
        entry.timer, entry.handle = timer, timer.schedule(at, entry, entry.id)

    def _withdraw(self, entry: MemoryMessage) -> None:
        if entry.timer is not None:
            entry.timer.cancel(entry.handle)


class UnboundedSimpleWheel(Generic[T]):
    """A simple wheel, with a heap for items beyond its span; every item needs a rank.

    A queue takes messages for any instant, so it cannot pass the wheel's refusal on.
    """

    def __init__(self) -> None:
        self._parts: tuple[Timer[T], Timer[T]] = SimpleWheel(), HeapTimer()

    def schedule(self, at: int, item: T, rank: int | None = None) -> Handle:
        """Add an item that is due at `at`."""
        wheel, heap = self._parts
        try:
            return wheel.schedule(at, item, rank)
        except ValueError:
            return heap.schedule(at, item, rank)

    def cancel(self, handle: Handle) -> bool:
        """Remove an item; return False if it is no longer there."""
        return any(part.cancel(handle) for part in self._parts)

    def advance(self, now: int) -> list[T]:
        """Remove and return the items that are due at `now`, in due order."""
        due: list[T] = []
        while (found := self.first(now)) is not None:
            handle, item = found
            self.cancel(handle)
            due.append(item)
        return due

    def first(self, now: int) -> tuple[Handle, T] | None:
        """Return the first item that is due at `now`, and its handle, without removing it."""
        firsts = [part.first(now) for part in self._parts]
        found = [first for first in firsts if first is not None]
        return min(found, key=_handle_of, default=None)

    def next_due(self) -> int | None:
        """Return the instant at which the first item is due, or None if there are no items."""
        instants = [part.next_due() for part in self._parts]
        return min((at for at in instants if at is not None), default=None)

    def __len__(self) -> int:
        return sum(map(len, self._parts))


def _handle_of(found: tuple[Handle, T]) -> Handle:
    return found[0]


TIMERS: dict[str, MakeTimer] = {
    "heap": HeapTimer,
    "simple": UnboundedSimpleWheel,
    "sorted": SortedHashedWheel,
    "hashed": HashedWheel,
    "hierarchical": HierarchicalWheel,
}
