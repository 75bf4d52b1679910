"""What the backends of all SQL databases have in common."""

from abc import abstractmethod
from typing import Any, ClassVar

from duequeue.errors import SchemaError
from duequeue.port.alerts import Alerts, OnAlert
from duequeue.port.store import Backend, Steps, Store
from duequeue.process.shared import Shared
from duequeue.stores.mailbox import MailboxAlerts, Wire
from duequeue.stores.sql.commands import Execute, Query, Row
from duequeue.stores.sql.history_table import HistoryDays, SqlHistoryTable
from duequeue.stores.sql.migrations import ensure_schema, schema_script
from duequeue.stores.sql.settling import Settling
from duequeue.stores.sql.store import Kind, SqlStore
from duequeue.stores.sql.watermark import Watermark

_watermarks = Shared(Watermark)
_history_days = Shared(HistoryDays)


class SqlBackend(Backend):
    """Opens the tables of a dialect; see `port.store.Backend`."""

    dialect: ClassVar[str]
    # On a server, how wake-ups travel: by its own means, or through Redis if the URL names one.
    _wire: Wire[Any]
    # The login of a producer may not look at messages, and offers through functions.
    _for_producer = False

    @abstractmethod
    def borrow_session(self, connection: object, session: Any) -> Any:
        """Return a session inside a caller's transaction, for that of the queue."""

    def borrow(self, connection: object, session: Any, store: Any) -> tuple[Any, Store]:
        """Use a caller's connection, if it leads to the same database as the queue's session."""
        return self.borrow_session(connection, session), store.borrowed()

    def migrate(self) -> Steps[list[str]]:
        """Bring the tables up to date, and return the names of the applied migrations."""
        applied = yield from ensure_schema(self.dialect, migrate=True)
        return [migration.name for migration in applied]

    def schema_script(self) -> str:
        """Return the schema as a script."""
        return schema_script(self.dialect)

    def alerts(self, session: Any, kind: str, on_alert: OnAlert) -> Alerts:  # noqa: ARG002 - only a file needs it
        """Join the mailbox that this process shares."""
        return MailboxAlerts(self._wire, kind, on_alert)

    def open_store(
        self, kind: str, sweep_interval: int, *, migrate: bool, history: bool
    ) -> Steps[SqlStore]:
        """Open the store of one kind, with the watermark that all queues of this process share."""
        found = yield from find_kind(self.dialect, kind, migrate=migrate)
        days = _history_days.get(self.place) if history else None
        settling = Settling(found.id, days, by_function=self._for_producer)
        watermark = _watermarks.get((self.place, kind))
        watermark.start_over()
        return SqlStore(found, settling, sweep_interval, watermark)

    def count_types(self, name: str, most: int) -> Steps[dict[str, int]]:
        """Ask the table of kinds, unless the login may not look at messages."""
        if self._for_producer:
            return {}
        rows: list[Row] = yield Query("count_types", {"prefix": f"{name}|", "most": most})
        return {kind.partition("|")[2]: live for kind, live in rows}

    def open_history(self, *, migrate: bool) -> Steps[SqlHistoryTable]:
        """Open the history of all kinds."""
        yield from ensure_schema(self.dialect, migrate=migrate)
        return SqlHistoryTable()

    def kinds(self) -> Steps[list[str]]:
        """Look the kinds up in tables of any version, unless there are none."""
        has_tables: list[Row] = yield Query("has_migrations")
        if not has_tables[0][0]:
            raise SchemaError(
                "this database has no DueQueue tables: open a queue in it, or run "
                "`duequeue migrate --url …`, to create them"
            )
        rows: list[Row] = yield Query("list_kinds")
        return [kind for (kind,) in rows]


def find_kind(dialect: str, kind: str, *, migrate: bool) -> Steps[Kind]:
    """Check or create the tables, and look up the number that identifies a kind."""
    yield from ensure_schema(dialect, migrate=migrate)
    rows: list[Row] = yield Query("find_kind", {"kind": kind})
    if not rows:
        yield Execute("add_kind", {"kind": kind})
        rows = yield Query("find_kind", {"kind": kind})
    return Kind(rows[0][0], kind)
