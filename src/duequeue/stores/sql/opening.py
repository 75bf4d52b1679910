"""How every SQL backend opens a store."""

from duequeue.errors import SchemaError
from duequeue.port.store import Steps
from duequeue.process.shared import Shared
from duequeue.stores.sql.commands import Execute, Query, Row
from duequeue.stores.sql.history_table import HistoryDays, SqlHistoryTable
from duequeue.stores.sql.migrations import ensure_schema
from duequeue.stores.sql.settling import Settling
from duequeue.stores.sql.store import Kind, SqlStore
from duequeue.stores.sql.watermark import Watermark

_watermarks = Shared(Watermark)
_history_days = Shared(HistoryDays)


def open_store(
    dialect: str,
    place: str,
    kind: str,
    sweep_interval: int,
    *,
    migrate: bool,
    history: bool,
    by_function: bool = False,
) -> Steps[SqlStore]:
    """Open the store of a kind, with the watermark that all queues of this process share."""
    found = yield from find_kind(dialect, kind, migrate=migrate)
    days = _history_days.get(place) if history else None
    settling = Settling(found.id, days, by_function=by_function)
    watermark = _watermarks.get((place, kind))
    watermark.start_over()
    return SqlStore(found, settling, sweep_interval, watermark)


def find_kind(dialect: str, kind: str, *, migrate: bool) -> Steps[Kind]:
    """Check or create the tables, and look up the number that identifies a kind."""
    yield from ensure_schema(dialect, migrate=migrate)
    rows: list[Row] = yield Query("find_kind", {"kind": kind})
    if not rows:
        yield Execute("add_kind", {"kind": kind})
        rows = yield Query("find_kind", {"kind": kind})
    return Kind(rows[0][0], kind)


def count_types(name: str, most: int, *, may_look: bool) -> Steps[dict[str, int]]:
    """Count the messages of each payload type of a name, if it has several."""
    if not may_look:
        return {}
    rows: list[Row] = yield Query("count_types", {"prefix": f"{name}|", "most": most})
    return {kind.partition("|")[2]: live for kind, live in rows}


def open_history(dialect: str, *, migrate: bool) -> Steps[SqlHistoryTable]:
    """Check or create the tables, and open the history of all kinds."""
    yield from ensure_schema(dialect, migrate=migrate)
    return SqlHistoryTable()


def migrate(dialect: str) -> Steps[list[str]]:
    """Bring the tables up to date and return the names of the applied migrations."""
    applied = yield from ensure_schema(dialect, migrate=True)
    return [migration.name for migration in applied]


def list_kinds() -> Steps[list[str]]:
    """Return the kinds of all queues, in tables of any version."""
    has_tables: list[Row] = yield Query("has_migrations")
    if not has_tables[0][0]:
        raise SchemaError(
            "this database has no DueQueue tables: open a queue in it, or run "
            "`duequeue migrate --url …`, to create them"
        )
    rows: list[Row] = yield Query("list_kinds")
    return [kind for (kind,) in rows]
