"""What the pool and its watchdog need to know of a server and its drivers."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pymysql

from duequeue.stores.sql.mariadb.settings import MariadbSettings


@dataclass(frozen=True)
class MariadbServer:
    """A database and login of some settings; see `pooling.server.PooledServer`."""

    settings: MariadbSettings

    @property
    def pool_size(self) -> int:
        """The pool size of the URL."""
        return self.settings.pool_size

    def __str__(self) -> str:
        return f"MariaDB at {self.settings.address}"

    def socket_of(self, connection: Any) -> int:
        """Ask the connection."""
        number: int = connection.socket_number()
        return number

    def is_lost(self, connection: Any) -> bool:
        """Ask the connection."""
        lost: bool = connection.is_lost()
        return lost

    def finish(self, connection: Any) -> None:
        """Close without waiting for anything."""
        connection.finish()

    def answers(self, seconds: int) -> bool:
        """Connect to one of the hosts, and run a statement."""
        context = self.settings.ssl_context
        for host in self.settings.address.hosts:
            try:
                with (
                    pymysql.connect(
                        host=host.name,
                        port=host.port,
                        connect_timeout=seconds,
                        read_timeout=seconds,
                        write_timeout=seconds,
                        ssl=context if self.settings.must_encrypt else None,
                        ssl_disabled=context is None,
                        **self.settings.arguments,
                    ) as connection,
                    connection.cursor() as cursor,
                ):
                    cursor.execute("SELECT 1")
            except pymysql.err.MySQLError as error:
                if not _is_silence(error):
                    return True
            else:
                return True
        return False


def _is_silence(error: pymysql.err.MySQLError) -> bool:
    with suppress(IndexError):
        return "timed out" in str(error.args[1])
    return False
