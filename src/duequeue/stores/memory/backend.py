"""The store in this process's memory, which ends with the process."""

import threading
from collections import defaultdict
from math import inf
from typing import TypeVar

from duequeue.drive.steps import at_once, drive
from duequeue.errors import InvalidArgument
from duequeue.port.history_table import HistoryTable
from duequeue.port.store import AsyncSession, Backend, Operation, Session, Store
from duequeue.process.shared import Shared
from duequeue.stores.memory.cron_table import MemoryCrons
from duequeue.stores.memory.history_table import MemoryHistory, MemoryHistoryTable, MemorySettling
from duequeue.stores.memory.store import MemoryStore
from duequeue.stores.memory.table import DEFAULT_TIMER, TIMERS, MemoryTable
from duequeue.stores.threaded import InlineSession
from duequeue.stores.url_parts import refuse_unknown_options, split_options

T = TypeVar("T")


class MemoryDatabase:
    """The tables under one name; they are cleared when the last session on them closes."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.timer = DEFAULT_TIMER
        self.tables: defaultdict[str, MemoryTable] = defaultdict(self._new_table)
        self.crons: defaultdict[str, MemoryCrons] = defaultdict(MemoryCrons)
        self.history = MemoryHistory()
        self.sessions = 0
        self.is_broken = False

    def mend(self) -> None:
        """Make every message claimable again, after an interrupt in the middle of an operation."""
        for table in self.tables.values():
            table.rebuild()
        self.is_broken = False

    def _new_table(self) -> MemoryTable:
        return MemoryTable(TIMERS[self.timer])


_databases = Shared(MemoryDatabase)


class MemoryBackend(Backend):
    """`memory:` or `memory:name`, perhaps with a `?timer=`; see `port.store.Backend`."""

    no_transactions = "because a memory queue has no transactions"

    def __init__(self, url: str) -> None:
        location, options = split_options(url)
        refuse_unknown_options(options, {"timer"})
        self._timer = options.get("timer")
        if self._timer is not None and self._timer not in TIMERS:
            raise InvalidArgument(
                "timer", f"must be one of {', '.join(TIMERS)}, not {self._timer!r}"
            )
        self._name = location.partition(":")[2]
        self._database = _databases.get(self._name)

    @property
    def address(self) -> str:
        """The URL."""
        return f"memory:{self._name}"

    def session(self) -> Session:
        """Run one operation at a time, under a lock."""
        return MemorySession(self._database, self.address, self._timer)

    def async_session(self) -> AsyncSession:
        """Run operations in the event loop, because none takes long enough to need a thread."""
        return InlineSession(self.session())

    @at_once
    def open_store(self, kind: str, sweep_interval: int, *, migrate: bool, history: bool) -> Store:  # noqa: ARG002 - the port's signature
        """Find or create the table of a kind."""
        database = self._database
        table = database.tables[kind]
        settling = MemorySettling(kind, table, database.history, keeps=history)
        return MemoryStore(table, settling, database.crons[kind])

    @at_once
    def count_types(self, name: str, most: int) -> dict[str, int]:
        """Look at the tables of the name."""
        types = {
            kind.partition("|")[2]: min(len(table.by_key), most)
            for kind, table in self._database.tables.items()
            if kind.startswith(f"{name}|")
        }
        return types if len(types) > 1 else {}

    @at_once
    def open_history(self, *, migrate: bool) -> HistoryTable:  # noqa: ARG002 - the port's signature
        """Find the history of all kinds."""
        return MemoryHistoryTable(self._database.history, self._database.tables)

    @at_once
    def kinds(self) -> list[str]:
        """Return every kind that has a table."""
        return sorted(self._database.tables)


class MemorySession:
    """Runs operations under one lock; the first one chooses the timer of the database."""

    def __init__(self, database: MemoryDatabase, address: str, timer: str | None) -> None:
        self._database = database
        with database.lock:
            if database.sessions == 0:
                database.timer = timer or DEFAULT_TIMER
            elif timer not in {None, database.timer}:
                raise InvalidArgument(
                    "timer",
                    text=f"{address} is open with timer={database.timer}, so it cannot be opened "
                    f"with timer={timer}; use the same timer, or another name",
                )
            database.sessions += 1

    def run(
        self,
        operation: Operation[T],
        seconds: float = inf,  # noqa: ARG002 - no operation takes long
        *,
        consumes: bool = False,  # noqa: ARG002 - there are no connections to wait for
    ) -> T:
        """Run one operation alone."""
        with self._database.lock:
            if self._database.is_broken:
                self._database.mend()
            try:
                return drive(operation(), _refuse)
            except BaseException:
                self._database.is_broken = True  # mended later, as an interrupt may come twice
                raise

    def close(self) -> None:
        """Close the session; the last one to close clears the tables."""
        with self._database.lock:
            self._database.sessions -= 1
            if self._database.sessions == 0:
                self._database.tables.clear()
                self._database.crons.clear()
                self._database.history.rows.clear()


def _refuse(command: object) -> object:
    raise AssertionError(f"the memory store has no commands, but an operation yielded {command!r}")
