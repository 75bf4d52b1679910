"""What is known of a server and its limits, and how the pool and its watchdog reach it."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import pymysql

from duequeue.stores.sql.mariadb.settings import MariadbSettings


class ServerFacts(NamedTuple):
    """Which server it is, and its limits."""

    is_mysql: bool
    most_bytes: int  # of a packet, which is max_allowed_packet
    lock_seconds: int  # how long a statement of ours waits for a locked row
    number: int = 0  # of the connection


def is_mysql(version: str) -> bool:
    """Return whether a version is one of MySQL and not of MariaDB."""
    return "mariadb" not in version.lower()


@dataclass(frozen=True)
class MariadbServer:
    """A database and login of some settings; see `watchdog.PooledServer`."""

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
