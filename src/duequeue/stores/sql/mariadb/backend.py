"""`mariadb://user:password@host:port/database`, through PyMySQL and asyncmy."""

from dataclasses import replace
from functools import partial
from typing import Any

from duequeue.port.examining import Finding
from duequeue.port.store import AsyncSession, Session, Steps
from duequeue.stores.sql.backend import SqlBackend
from duequeue.stores.sql.connections.borrowed import BorrowedSession
from duequeue.stores.sql.connections.borrowed_async import AsyncBorrowedSession
from duequeue.stores.sql.connections.home_async import AsyncHome
from duequeue.stores.sql.connections.published_alerts import published_wire
from duequeue.stores.sql.mariadb import examining
from duequeue.stores.sql.mariadb.alerts import MariadbWire
from duequeue.stores.sql.mariadb.given import GivenMariadb
from duequeue.stores.sql.mariadb.given_async import AsyncGivenMariadb
from duequeue.stores.sql.mariadb.session import MariadbSession
from duequeue.stores.sql.mariadb.session_async import AsyncMariadbSession
from duequeue.stores.sql.mariadb.settings import MariadbSettings


class MariadbBackend(SqlBackend):
    """One database of MariaDB or MySQL; see `port.store.Backend`."""

    dialect = "mariadb"

    def __init__(self, url: str) -> None:
        self._settings = MariadbSettings.from_url(url)
        self._wire = published_wire(self._settings.alerts) or MariadbWire(self._settings)

    @property
    def address(self) -> str:
        """Hosts, ports and database."""
        return str(self._settings.address)

    @property
    def place(self) -> str:
        """The hosts, the user and the database."""
        return self._settings.place

    def session(self) -> Session:
        """Use a pool of connections."""
        return MariadbSession(self._settings)

    def async_session(self) -> AsyncSession:
        """Use a pool of asynchronous connections."""
        return AsyncMariadbSession(self._settings)

    def reading_session(self, at_once: int, seconds: float) -> AsyncSession:
        """Use a pool of its own, in which one more connection than that is kept for consumers."""
        settings = replace(self._settings, pool_size=at_once + 1, read_seconds=seconds)
        return AsyncMariadbSession(settings)

    def borrow_session(self, connection: object, session: Any) -> Any:
        """Use a caller's connection, if it leads to the same database as the queue's session."""
        home, address = session.home, self._settings.address
        if isinstance(home, AsyncHome):
            given_async = partial(AsyncGivenMariadb, home=home, address=address)
            return AsyncBorrowedSession(connection, given_async, home)
        return BorrowedSession(connection, partial(GivenMariadb, home=home, address=address), home)

    def examine(self, now: int) -> Steps[list[Finding]]:
        """Examine the server and the tables."""
        return examining.examine(now)
