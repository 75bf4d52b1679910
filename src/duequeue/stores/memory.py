"""The store that lives and dies with the process."""

import threading
from collections import defaultdict
from collections.abc import Sequence
from typing import TypeVar

from duequeue.alerts import Alerts, NoAlerts, OnAlert
from duequeue.message import OfferOutcome
from duequeue.shared import Shared
from duequeue.steps import at_once, drive
from duequeue.store import (
    AsyncSession,
    Burial,
    Buried,
    Claimed,
    Counts,
    Lease,
    Operation,
    Record,
    Release,
    Session,
    Steps,
    Store,
    Stored,
)
from duequeue.stores.memory_cron import MemoryCrons, MemoryCronTable
from duequeue.stores.memory_table import Entry, MemoryTable
from duequeue.stores.threaded import InlineSession

T = TypeVar("T")


class MemoryDatabase:
    """The tables of one name, gone with the last session on them."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.tables: defaultdict[str, MemoryTable] = defaultdict(MemoryTable)
        self.crons: defaultdict[str, MemoryCrons] = defaultdict(MemoryCrons)
        self.sessions = 0


_databases = Shared(MemoryDatabase)


class MemoryBackend:
    """`memory:` or `memory:name`; see `store.Backend`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._database = _databases.get(name)

    @property
    def address(self) -> str:
        """The URL."""
        return f"memory:{self._name}"

    @property
    def place(self) -> str:
        """The URL."""
        return self.address

    def session(self) -> Session:
        """Take turns."""
        return MemorySession(self._database)

    def async_session(self) -> AsyncSession:
        """Take turns: nothing here takes long enough to need a thread."""
        return InlineSession(self.session())

    def borrow(self, connection: object) -> Session:
        """Refuse: there are no transactions to be inside of."""
        raise TypeError(f"connection {connection!r}: a memory queue has no transactions")

    def borrow_async(self, connection: object) -> AsyncSession:
        """Refuse likewise."""
        raise TypeError(f"connection {connection!r}: a memory queue has no transactions")

    @at_once
    def migrate(self) -> list[str]:
        """Do nothing: there is no schema."""
        return []

    def schema_script(self) -> str:
        """Return nothing."""
        return ""

    def alerts(self, kind: str, on_alert: OnAlert) -> Alerts:  # noqa: ARG002 - the port's signature
        """Return none: no other process can see this."""
        return NoAlerts()

    def open_store(self, kind: str, sweep_interval: int, *, migrate: bool) -> Steps[Store]:  # noqa: ARG002 - the port's signature
        """Find or make the table."""
        yield from ()
        return MemoryStore(self._database.tables[kind], self._database.crons[kind])


class MemoryStore:
    """The messages of one kind in a table of this process; see `store.Store`."""

    def __init__(self, table: MemoryTable, crons: MemoryCrons) -> None:
        self._table = table
        self.cron = MemoryCronTable(table, crons)

    @at_once
    def offer(
        self,
        records: Sequence[Record],
        now: int,  # noqa: ARG002 - the port's signature; nothing here is dated
        *,
        sender: str | None = None,  # noqa: ARG002 - no other process can reach this
        hurried: bool = False,  # noqa: ARG002 - nothing here is held for long
    ) -> list[OfferOutcome]:
        """Offer one by one."""
        return [self._offer(record) for record in records]

    @at_once
    def claim(self, limit: int, now: int, until: int, token: int) -> list[Claimed]:
        """Take from the front of the heap."""
        claimed: list[Claimed] = []
        while len(claimed) < limit and (entry := self._table.take_due(now)) is not None:
            entry.leased_until, entry.token, entry.attempt = until, token, entry.attempt + 1
            self._table.place(entry)
            lease = Lease(entry.id, token)
            facts = (entry.key, entry.payload, entry.asked_at, entry.attempt, entry.headers)
            claimed.append(Claimed(lease, *facts))
        return claimed

    @at_once
    def ack(self, leases: Sequence[Lease]) -> set[int]:
        """Remove what is held."""
        return {self._table.remove(entry) for entry in self._held(leases)}

    @at_once
    def extend(self, leases: Sequence[Lease], until: int) -> set[int]:
        """Move the end of what is held."""
        return {self._table.lease(entry, until) for entry in self._held(leases)}

    @at_once
    def release(self, releases: Sequence[Release]) -> set[int]:
        """Put what is held back in order."""
        return {
            self._table.reschedule(entry, due_at)
            for lease, due_at in releases
            for entry in self._held([lease])
        }

    @at_once
    def give_back(self, leases: Sequence[Lease]) -> set[int]:
        """Put what is held back where it was."""
        held = self._held(leases)
        for entry in held:
            entry.attempt -= 1
        return {self._table.reschedule(entry, entry.due_at) for entry in held}

    @at_once
    def bury(self, burials: Sequence[Burial], now: int) -> set[int]:
        """Move what is held to the buried."""
        won: set[int] = set()
        for lease, attempts, reason in burials:
            for entry in self._held([lease]):
                about = (entry.asked_at, attempts, reason, now, entry.headers)
                self._table.buried.append(Buried(entry.key, entry.payload, *about))
                won.add(self._table.remove(entry))
        return won

    @at_once
    def read(self, key: str) -> Stored | Buried | None:
        """Look among the live, then among the buried."""
        entry = self._table.by_key.get(key)
        if entry is None:
            return next(self._burials(key), None)
        about = (entry.due_at, entry.leased_until, entry.attempt, entry.headers)
        return Stored(entry.payload, entry.asked_at, *about)

    @at_once
    def drop(self, key: str) -> bool:
        """Remove by key."""
        entry = self._table.by_key.get(key)
        return entry is not None and self._table.remove(entry) > 0

    @at_once
    def drop_all(self) -> int:
        """Remove everything live."""
        return self._table.clear()

    @at_once
    def counts(self, now: int) -> Counts:
        """Walk over everything."""
        entries = self._table.by_key.values()
        free = [entry.due_at for entry in entries if entry.leased_until <= now]
        due = [due_at for due_at in free if due_at <= now]
        future = [due_at for due_at in free if due_at > now]
        return Counts(
            due=len(due),
            leased=len(entries) - len(free),
            future=len(future),
            buried=len(self._table.buried),
            oldest_due_at=min(due, default=None),
            next_due_at=min(future, default=None),
        )

    @at_once
    def next_due(self, now: int) -> int | None:
        """Look at the front of the heap."""
        return self._table.next_due(now)

    @at_once
    def earliest_due(self, now: int) -> int | None:
        """Look at the front of the heap."""
        return self._table.earliest_due(now)

    @at_once
    def buried(self, limit: int) -> list[Buried]:
        """List the buried."""
        return sorted(self._table.buried, key=lambda buried: buried.buried_at)[:limit]

    @at_once
    def revive(self, key: str, due_at: int, now: int) -> bool:  # noqa: ARG002 - the port's signature
        """Offer the newest burial as a new message."""
        found = next(self._burials(key), None)
        if found is None:
            return False
        outcome = self._offer(Record(key, found.payload, due_at, found.headers, replace=False))
        if outcome is not OfferOutcome.CREATED:
            return False
        # By identity: an older burial may be equal in everything.
        self._table.buried[:] = [each for each in self._table.buried if each is not found]
        return True

    @at_once
    def purge_buried(self, before: int) -> int:
        """Forget by time."""
        buried = self._table.buried
        kept = [each for each in buried if each.buried_at >= before]
        purged = len(buried) - len(kept)
        buried[:] = kept
        return purged

    def announce(self, due_at: int) -> None:
        """Do nothing: the heap is always in order."""

    @at_once
    def notify(self, due_at: int) -> None:
        """Do nothing: no other process can see this."""

    def borrowed(self) -> "MemoryStore":
        """Return itself: there are no transactions."""
        return self

    def _offer(self, record: Record) -> OfferOutcome:
        entry = self._table.by_key.get(record.key)
        if entry is None:
            self._table.add(record)
            return OfferOutcome.CREATED
        same = entry.payload == record.payload and entry.asked_at == record.due_at
        if same or not record.replace:
            return OfferOutcome.IGNORED
        entry.payload, entry.asked_at, entry.attempt = record.payload, record.due_at, 0
        entry.headers = record.headers
        self._table.reschedule(entry, record.due_at)
        return OfferOutcome.UPDATED

    def _held(self, leases: Sequence[Lease]) -> list[Entry]:
        found = [(self._table.by_id.get(lease.id), lease.token) for lease in leases]
        held = {entry.id: entry for entry, token in found if entry and entry.token == token}
        return list(held.values())

    def _burials(self, key: str) -> "filter[Buried]":
        return filter(lambda buried: buried.key == key, reversed(self._table.buried))


class MemorySession:
    """Runs operations under one lock."""

    def __init__(self, database: MemoryDatabase) -> None:
        self._database = database
        with database.lock:
            database.sessions += 1

    def run(self, operation: Operation[T]) -> T:
        """Run one operation alone."""
        with self._database.lock:
            return drive(operation(), _refuse)

    def close(self) -> None:
        """Let go; the last one out clears the tables."""
        with self._database.lock:
            self._database.sessions -= 1
            if self._database.sessions == 0:
                self._database.tables.clear()
                self._database.crons.clear()


def _refuse(command: object) -> object:
    raise AssertionError(f"the memory store has no commands, not even {command!r}")
