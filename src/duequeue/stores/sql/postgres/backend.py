"""`postgresql://user:password@host:port/database`, through psycopg 3."""

from dataclasses import replace
from typing import Any

from duequeue.port.examining import Finding
from duequeue.port.store import AsyncSession, Session, Steps
from duequeue.stores.sql.backend import SqlBackend
from duequeue.stores.sql.connections.borrowed import BorrowedSession
from duequeue.stores.sql.connections.borrowed_async import (
    AsyncBorrowedSession,
    AsyncGivenConnection,
)
from duequeue.stores.sql.connections.given_connection import ASYNCPG, is_a
from duequeue.stores.sql.connections.home_async import AsyncHome
from duequeue.stores.sql.connections.published_alerts import published_wire
from duequeue.stores.sql.postgres import examining
from duequeue.stores.sql.postgres.alerts import PostgresWire
from duequeue.stores.sql.postgres.given import GivenPostgres
from duequeue.stores.sql.postgres.given_async import AsyncGivenPostgres
from duequeue.stores.sql.postgres.given_asyncpg import GivenAsyncpg
from duequeue.stores.sql.postgres.roles import roles_script
from duequeue.stores.sql.postgres.session import PostgresSession
from duequeue.stores.sql.postgres.session_async import AsyncPostgresSession
from duequeue.stores.sql.postgres.settings import PostgresSettings


class PostgresBackend(SqlBackend):
    """One database of one server; see `port.store.Backend`."""

    dialect = "postgres"

    def __init__(self, url: str) -> None:
        self._settings = PostgresSettings.from_url(url)
        self._for_producer = self._settings.for_producer
        self._wire = published_wire(self._settings.alerts) or PostgresWire(self._settings)

    @property
    def address(self) -> str:
        """Host, port and database."""
        return str(self._settings.address)

    @property
    def place(self) -> str:
        """The connection string without its secrets; its user or options may imply a schema."""
        return self._settings.address.place

    def session(self) -> Session:
        """Use a pool of connections."""
        return PostgresSession(self._settings)

    def async_session(self) -> AsyncSession:
        """Use a pool of asynchronous connections."""
        return AsyncPostgresSession(self._settings)

    def reading_session(self, at_once: int, seconds: float) -> AsyncSession:
        """Use a pool of its own, in which one more connection than that is kept for consumers."""
        settings = replace(self._settings, pool_size=at_once + 1, read_seconds=seconds)
        return AsyncPostgresSession(settings)

    def borrow_session(self, connection: object, session: Any) -> Any:
        """Use a caller's connection, if it leads to the same database as the queue's session."""
        if isinstance(session.home, AsyncHome):
            return AsyncBorrowedSession(connection, self._given_async, session.home)
        return BorrowedSession(connection, self._given, session.home)

    def roles_script(self) -> str:
        """Return the roles as a script."""
        return roles_script()

    def examine(self, now: int) -> Steps[list[Finding]]:
        """Examine the server and the tables."""
        return examining.examine(now)

    def _given(self, connection: object) -> GivenPostgres:
        return GivenPostgres(connection, self._settings.address)

    def _given_async(self, connection: object) -> AsyncGivenConnection:
        kind = GivenAsyncpg if is_a(connection, ASYNCPG) else AsyncGivenPostgres
        return kind(connection, self._settings.address)
