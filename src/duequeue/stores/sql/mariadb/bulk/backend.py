"""MariaDB and MySQL for whole batches, which are written with long INSERT statements."""

from duequeue.port.bulk import Snapshots
from duequeue.port.store import Session, Steps
from duequeue.stores.sql.bulk import store as bulk
from duequeue.stores.sql.mariadb.backend import MariadbBackend
from duequeue.stores.sql.mariadb.bulk.conversation import BulkConversation
from duequeue.stores.sql.mariadb.bulk.snapshots import MariadbSnapshots
from duequeue.stores.sql.mariadb.session import MariadbSession
from duequeue.stores.sql.mariadb.settings import MariadbSettings


class BulkMariadbSession(MariadbSession):
    """A session that can load batches too."""

    conversation = BulkConversation


class BulkMariadbBackend:
    """One database of one server or cluster; see `port.bulk.BulkBackend`."""

    is_pooled = False

    def __init__(self, url: str) -> None:
        self._settings = MariadbSettings.from_url(url)

    def bulk_session(self) -> Session:
        """Use a pool of connections."""
        return BulkMariadbSession(self._settings)

    def open_bulk(self, kind: str, *, migrate: bool, history: bool) -> Steps[bulk.SqlBulk]:
        """Open the bulk store of one kind."""
        return bulk.open_bulk(MariadbBackend.dialect, kind, migrate=migrate, history=history)

    def snapshots(self, kind_id: int) -> Snapshots:
        """Read each part in a transaction of its own."""
        return MariadbSnapshots(self._settings, kind_id)
