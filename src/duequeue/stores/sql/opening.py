"""What every SQL backend does the same way."""

from duequeue.shared import Shared
from duequeue.store import Steps
from duequeue.stores.sql.commands import Execute, Query, Row
from duequeue.stores.sql.migrate import ensure_schema
from duequeue.stores.sql.operations import Kind, SqlStore
from duequeue.stores.sql.watermark import Watermark

_watermarks = Shared(Watermark)


def open_store(
    dialect: str, place: str, kind: str, sweep_interval: int, *, migrate: bool
) -> Steps[SqlStore]:
    """Check or create the tables, and look up the small number that stands for a kind."""
    yield from ensure_schema(dialect, migrate=migrate)
    rows: list[Row] = yield Query("find_kind", {"kind": kind})
    if not rows:
        yield Execute("add_kind", {"kind": kind})
        rows = yield Query("find_kind", {"kind": kind})
    watermark = _watermarks.get((place, kind))
    return SqlStore(Kind(rows[0][0], kind), sweep_interval, watermark)


def migrate(dialect: str) -> Steps[list[str]]:
    """Bring the tables up to date and name what was applied."""
    applied = yield from ensure_schema(dialect, migrate=True)
    return [migration.name for migration in applied]
