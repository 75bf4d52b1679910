"""Our own blocking connections, and how they are opened."""

import ssl
from collections.abc import Sequence
from math import inf
from time import monotonic
from typing import Any

import pymysql
from pymysql.constants import CLIENT, COMMAND
from pymysql.cursors import Cursor

from duequeue.process.contact import end_connection
from duequeue.stores.sql.connections.watchdog import WatchedPlace
from duequeue.stores.sql.mariadb.errors import NOT_READY, number_of
from duequeue.stores.sql.mariadb.replies import ServerReply, reply_of, reply_of_result
from duequeue.stores.sql.mariadb.server import ServerFacts, is_mysql
from duequeue.stores.sql.mariadb.settings import Host, MariadbSettings

# Every statement relies on seeing what was committed before it began, and a claim on locking only
# the rows that it takes. Without the strict mode, a text that is too long would be cut. The
# lock_wait_timeout limits changes of tables, because all other statements would have to wait behind
# them. On MariaDB, the group_concat_max_len is for ids that come back in a JSON array.
SETTINGS = (
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', lock_wait_timeout = 1",
    "SET SESSION group_concat_max_len = 1048576",
)
# MariaDB turns long lists into joins from this length on; 0 is never.
MARIADB_SETTINGS = ("SET SESSION in_predicate_conversion_threshold = 0",)
# Where it is on, a statement that reads a row and then locks it fails if the row changed meanwhile.
NO_SNAPSHOT_ISOLATION = "SET SESSION innodb_snapshot_isolation = OFF"
LOOK = (
    "SELECT @@max_allowed_packet, @@innodb_lock_wait_timeout, @@read_only, CONNECTION_ID()",
    "SHOW SESSION VARIABLES LIKE 'innodb_snapshot_isolation'",
)
# A node of Galera that has lost its cluster still answers the statements above, but not this one.
IS_READY = "DO 0"
# A server does not notice that a client has given up waiting for a lock, so this is limited, in
# seconds. A call with less time than that sets a shorter limit.
LONGEST_LOCK_WAIT = 8


class MariadbConnection(pymysql.Connection):
    """A connection of a pool."""

    _result: Any
    idle_since: float
    facts: ServerFacts
    lock_seconds: int

    def __init__(self, settings: MariadbSettings, host: Host, seconds: float) -> None:
        self._context = settings.ssl_context
        self.database_name = settings.address.database
        limit = max(min(settings.connect_seconds, seconds), 0.001)
        super().__init__(
            host=host.name,
            port=host.port,
            connect_timeout=limit,
            read_timeout=limit,
            write_timeout=limit,
            client_flag=CLIENT.MULTI_STATEMENTS,
            ssl=self._context if settings.must_encrypt else None,
            ssl_disabled=self._context is None,
            defer_connect=True,
            **settings.arguments,
        )

    def _create_ssl_ctx(self, sslp: Any) -> Any:  # noqa: ARG002
        # The driver would load the certificates of the system for each connection, which takes
        # longer than all the rest of connecting.
        return self._context or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

    def send(self, statements: Sequence[str]) -> list[ServerReply]:
        """Send statements in one packet, and return the reply to each."""
        self.query(";".join(statements))
        replies = [reply_of_result(self._result)]
        while self._result.has_next:
            self.next_result()
            replies.append(reply_of_result(self._result))
        return replies

    def send_only(self, statement: str) -> None:
        """Send a statement, without waiting for the reply."""
        self._execute_command(COMMAND.COM_QUERY, statement)  # type: ignore[attr-defined]

    def receive(self) -> ServerReply:
        """Wait for the reply to the statement that was sent last."""
        self.next_result()
        return reply_of_result(self._result)

    def lift_limits(self) -> None:
        """Let replies take as long as the watchdog allows, now that the connection is open."""
        self._read_timeout = self._write_timeout = None

    def cut(self) -> None:
        """End what waits for a reply in another thread."""
        line = self._sock  # type: ignore[attr-defined]
        if line is not None:
            end_connection(line)

    def socket_number(self) -> int:
        """Return the file descriptor; raise OSError if there is none any more."""
        line = self._sock  # type: ignore[attr-defined]
        if line is None:
            raise OSError("the connection is closed")
        number: int = line.fileno()
        return number

    def is_lost(self) -> bool:
        """Return whether the driver gave the connection up."""
        return self._sock is None  # type: ignore[attr-defined]

    def finish(self) -> None:
        """Close the connection, and notify the server unless it is lost."""
        if self.open:
            self.close()


def send(connection: Any, texts: Sequence[str], cursor_class: Any = Cursor) -> list[ServerReply]:
    """Send statements one after the other, and return the reply to each."""
    cursor = connection.cursor(cursor_class)
    replies = []
    for text in texts:
        cursor.execute(text)
        replies.append(reply_of(cursor.description, cursor.fetchall(), cursor.rowcount))
    return replies


def connect(place: WatchedPlace, settings: MariadbSettings) -> MariadbConnection:
    """Connect to the first host that can be used, within the time that the call has left."""
    seconds = inf if place.deadline is None else place.deadline - monotonic()
    hosts = list(settings.address.hosts)
    while True:
        host = hosts.pop(0)
        connection = MariadbConnection(settings, host, seconds / (len(hosts) + 1))
        place.connection = connection  # from here on, the watchdog enforces the deadline
        try:
            connection.connect()
            is_writable = _prepare(connection, settings)
            if is_writable or not hosts:
                return connection
        except pymysql.err.MySQLError as error:
            connection.finish()
            if not hosts or not may_try_next(error):
                raise
        except BaseException:
            connection.finish()  # it lacks settings that our statements need
            raise
        connection.finish()


def may_try_next(error: Exception) -> bool:
    """Return whether another host may work although this one does not."""
    number = number_of(error)
    return number is not None and (number >= 2000 or number in {0, NOT_READY, 1040, 1053})  # noqa: PLR2004


def first_statements(version: str, read_seconds: float | None) -> list[str]:
    """Return the statements for every new connection; the first two ask what `facts_from` needs."""
    own = () if is_mysql(version) else MARIADB_SETTINGS
    limit = () if read_seconds is None else (_limit_reads(version, read_seconds),)
    return [*LOOK, IS_READY, *SETTINGS, *own, *limit]


def _limit_reads(version: str, seconds: float) -> str:
    if is_mysql(version):
        return f"SET SESSION max_execution_time = {int(seconds * 1000)}"
    return f"SET SESSION max_statement_time = {seconds}"


def facts_from(version: str, replies: Sequence[ServerReply]) -> tuple[ServerFacts, bool, list[str]]:
    """Return what is known of a server, whether it takes writes, and what to send next."""
    ((most, wait, read_only, number),) = replies[0].rows or [()]
    wait = min(int(wait), LONGEST_LOCK_WAIT)
    facts = ServerFacts(is_mysql(version), int(most), wait, int(number))
    has_snapshots = (replies[1].rows or [("", "OFF")])[0][1] == "ON"
    more = [f"SET SESSION innodb_lock_wait_timeout = {wait}"]
    return facts, not int(read_only), [*more, *([NO_SNAPSHOT_ISOLATION] if has_snapshots else [])]


def _prepare(connection: MariadbConnection, settings: MariadbSettings) -> bool:
    version = str(connection.server_version)  # type: ignore[attr-defined]
    connection.facts, is_writable, more = facts_from(
        version, connection.send(first_statements(version, settings.read_seconds))
    )
    connection.lock_seconds = connection.facts.lock_seconds
    connection.send(more)
    connection.lift_limits()
    return is_writable
