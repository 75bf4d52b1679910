"""Every bulk operation of the SQL stores."""

from duequeue.port.store import Steps
from duequeue.stores.sql.bulk.offers import SqlStage
from duequeue.stores.sql.bulk.streams import SWEEP_INTERVAL, SqlStreams
from duequeue.stores.sql.history_days import HistoryDays
from duequeue.stores.sql.opening import find_kind
from duequeue.stores.sql.settling import Settling
from duequeue.stores.sql.store import Kind, SqlStore
from duequeue.stores.sql.watermark import Watermark


class SqlBulk(SqlStage, SqlStreams):
    """Batches of one kind in an SQL database; see `port.bulk.BulkStore`."""

    def __init__(self, kind: Kind, settling: Settling) -> None:
        self.kind_id = kind.id
        messages = SqlStore(kind, settling, SWEEP_INTERVAL, Watermark())
        self.notify = messages.notify
        self.counts = messages.counts
        SqlStage.__init__(self, kind.id, settling)
        SqlStreams.__init__(self, kind.id, messages, settling)


def open_bulk(dialect: str, kind: str, *, migrate: bool, history: bool) -> Steps[SqlBulk]:
    """Check or create the tables, and open the bulk store of a kind."""
    found = yield from find_kind(dialect, kind, migrate=migrate)
    return SqlBulk(found, Settling(found.id, HistoryDays() if history else None))
