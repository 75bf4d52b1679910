"""Blocking sessions inside a transaction that belongs to the caller."""

import sys
from functools import partial
from math import inf
from typing import Any, TypeVar

import pymysql
from pymysql.constants import SERVER_STATUS

from duequeue.drive.steps import drive
from duequeue.errors import InvalidArgument, StoreError
from duequeue.port.store import Operation
from duequeue.stores.sql.connections.given_connection import MYSQLCLIENT, finder, is_a, refused
from duequeue.stores.sql.mariadb.connections import send
from duequeue.stores.sql.mariadb.conversation import Conversation, command_name
from duequeue.stores.sql.mariadb.errors import (
    CHANGED_SINCE_SNAPSHOT,
    DEADLOCK,
    number_of,
    translate,
)
from duequeue.stores.sql.mariadb.identity import (
    Home,
    Identity,
    current_database,
    identify,
    recall,
    remember,
)
from duequeue.stores.sql.mariadb.server import ServerFacts, is_mysql
from duequeue.stores.sql.mariadb.settings import HostAddress

T = TypeVar("T")

ACCEPTED = (
    "a connection of PyMySQL or mysqlclient, an SQLAlchemy Session or Connection over one of them, "
    "or a Django connection over one of them or its alias"
)
# Unlike on our own connections, the limit of a packet is left to the server.
ANY_SIZE = 2**62


class BorrowedMariadbSession:
    """Runs operations on a caller's connection."""

    def __init__(self, given: object, home: Home) -> None:
        self._find = finder(given, _checked)
        self.home = home
        if not is_open(self._find()):
            raise InvalidArgument("connection", "is closed")

    def run(
        self,
        operation: Operation[T],
        seconds: float = inf,  # noqa: ARG002 - the caller decides how long it may take
        *,
        consumes: bool = False,  # noqa: ARG002
    ) -> T:
        """Run one operation; the caller commits."""
        connection = self._find()
        try:
            self._admit(connection)
            return drive(operation(), partial(self._perform, connection))
        except _errors_of(connection) as error:
            raise explained(error, self.home.address) from error

    def close(self) -> None:
        """Leave the connection to its owner."""

    def _perform(self, connection: Any, command: Any) -> object:
        if command_name(command) == "add_history_day":
            self.home.add_history_day(command.parameters["day"])
            return []
        talk = Conversation(facts_of(connection), borrowed=True)
        return drive(talk.perform(command), partial(_send, connection))

    def _admit(self, connection: Any) -> None:
        """Raise unless the connection leads to the database of the queue."""
        identity = self._recall(connection) or self._look(connection)
        if identity != self.home.identity:
            self.home.look()
            self.home.require(self._look(connection))

    def _recall(self, connection: Any) -> Identity | None:
        known = recall(connection)
        if known is None:
            return None
        place = drive(current_database(), partial(self._perform, connection))
        return known if known.database == place else None

    def _look(self, connection: Any) -> Identity:
        identity, has_tables = drive(identify(), partial(self._perform, connection))
        return remember(connection, identity, has_tables=has_tables)


def explained(error: Exception, address: HostAddress) -> StoreError:
    """Return the DueQueue error for an error in a caller's transaction."""
    translated = translate(error, address)
    number = number_of(error)
    if number == DEADLOCK:
        advice = "the whole transaction was rolled back, and only its owner can repeat it"
        return StoreError(f"{translated}; {advice}")
    if number == CHANGED_SINCE_SNAPSHOT:
        advice = "begin the transaction with the isolation level READ COMMITTED, and repeat it"
        return StoreError(f"{translated}; {advice}")
    return translated


def facts_of(connection: Any) -> ServerFacts:
    """Return what is known of the server of a caller's connection."""
    version = connection.get_server_info()
    text = version.decode() if isinstance(version, bytes) else str(version)
    return ServerFacts(is_mysql(text), ANY_SIZE, 0)


def refuse_autocommit(connection: Any) -> None:
    """Raise unless what runs on this connection waits for the caller's commit."""
    if connection.get_autocommit() and not _has_begun(connection):
        raise InvalidArgument(
            "connection",
            "has no open transaction: call its begin(), or turn its autocommit off, "
            "which is the only way with mysqlclient on MySQL",
        )


def _has_begun(connection: Any) -> bool:
    """Return whether a connection is in a transaction; mysqlclient has to ask, and only MariaDB."""
    status = getattr(connection, "server_status", None)
    if status is not None:
        return bool(status & SERVER_STATUS.SERVER_STATUS_IN_TRANS)
    if facts_of(connection).is_mysql:
        return False
    try:
        (reply,) = _send(connection, ["SELECT @@in_transaction"])
    except _errors_of(connection):  # a connection that is lost has lost its transaction, too
        return False
    return bool(reply.rows == [(1,)])


def is_open(connection: Any) -> bool:
    """Return whether a caller's connection is open; each driver has its own word for it."""
    return bool(connection.open)


def _checked(given: object) -> Any:
    if not isinstance(given, pymysql.Connection) and not is_a(given, MYSQLCLIENT):
        raise refused(given, ACCEPTED)
    connection: Any = given
    if is_open(connection):
        refuse_autocommit(connection)
    return connection


def _errors_of(connection: Any) -> tuple[type[Exception], ...]:
    """Return the errors of a connection's driver."""
    return (pymysql.err.MySQLError, connection.Error)


def _send(connection: Any, statements: Any) -> Any:
    """Send statements one by one, because a caller's connection takes no packets of several."""
    if isinstance(connection, pymysql.Connection):
        return send(connection, statements)
    return send(connection, statements, sys.modules["MySQLdb.cursors"].Cursor)
