"""What the pool and its watchdog need to know of PostgreSQL and psycopg."""

from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.errors import ConnectionTimeout

from duequeue.stores.sql.pooling.watchdog import WatchedPlace
from duequeue.stores.sql.postgres.settings import PostgresSettings


@dataclass(frozen=True)
class PostgresServer:
    """A server with the database and login of some settings; see `pooling.server.PooledServer`."""

    settings: PostgresSettings

    @property
    def pool_size(self) -> int:
        """The pool size of the URL."""
        return self.settings.pool_size

    def __str__(self) -> str:
        return f"PostgreSQL at {self.settings.address}"

    def socket_of(self, connection: Any) -> int:
        """Ask the driver's C library."""
        try:
            number: int = connection.pgconn.socket
        except psycopg.Error as error:
            raise OSError("the connection is closed") from error
        return number

    def is_lost(self, connection: Any) -> bool:
        """Ask the driver."""
        lost: bool = connection.broken
        return lost

    def finish(self, connection: Any) -> None:
        """Close without waiting for anything."""
        connection.pgconn.finish()

    def answers(self, seconds: int) -> bool:
        """Connect, and run a statement."""
        arguments = {**self.settings.connection_arguments, "connect_timeout": seconds}
        place = WatchedPlace(self)
        try:
            with (
                psycopg.connect(self.settings.conninfo, **arguments) as connection,
                place.limit(connection, seconds),
            ):
                connection.execute("SELECT 1")
        except ConnectionTimeout:
            return False
        except (psycopg.Error, OSError):
            return not place.is_cut
        return True
