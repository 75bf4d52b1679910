"""The drivers whose connections a queue on MariaDB or MySQL takes, and what they have in common."""

import sys
from collections.abc import Sequence
from typing import Any

import pymysql
from asyncmy.connection import Connection
from pymysql.constants import SERVER_STATUS

from duequeue.errors import InvalidArgument, StoreError
from duequeue.stores.sql.connections.given_connection import (
    MYSQLCLIENT,
    async_refused,
    is_a,
    refused,
)
from duequeue.stores.sql.mariadb.connections import send
from duequeue.stores.sql.mariadb.connections_async import send_async
from duequeue.stores.sql.mariadb.errors import (
    CHANGED_SINCE_SNAPSHOT,
    DEADLOCK,
    DRIVER_ERRORS,
    number_of,
    translate,
)
from duequeue.stores.sql.mariadb.replies import ServerReply
from duequeue.stores.sql.mariadb.server import ServerFacts, is_mysql
from duequeue.stores.sql.mariadb.settings import HostAddress

ACCEPTED = (
    "a connection of PyMySQL or mysqlclient, an SQLAlchemy Session or Connection over one of them, "
    "or a Django connection over one of them or its alias"
)
ASYNC_ACCEPTED = (
    "an asyncmy connection, or an SQLAlchemy AsyncSession or AsyncConnection over asyncmy"
)
# Unlike on our own connections, the limit of a packet is left to the server.
ANY_SIZE = 2**62


def accepted(given: object) -> Any:
    """Return a blocking connection that has an open transaction, or is closed, or raise."""
    if not isinstance(given, pymysql.Connection) and not is_a(given, MYSQLCLIENT):
        raise refused(given, ACCEPTED)
    connection: Any = given
    if is_open(connection):
        _refuse_autocommit(connection)
    return connection


def accepted_async(given: object) -> Any:
    """Return an awaiting connection that has an open transaction, or is closed, or raise."""
    if not isinstance(given, Connection):
        raise async_refused(given, ASYNC_ACCEPTED)
    if is_open(given):
        _refuse_autocommit(given)
    return given


def is_open(connection: Any) -> bool:
    """Return whether a caller's connection is open; each driver has its own word for it."""
    return bool(connection.connected if isinstance(connection, Connection) else connection.open)


def errors_of(connection: Any) -> tuple[type[Exception], ...]:
    """Return the errors of a connection's driver; only mysqlclient has others than ours."""
    own = getattr(connection, "Error", None)
    return DRIVER_ERRORS if own is None else (*DRIVER_ERRORS, own)


def send_each(connection: Any, statements: Sequence[str]) -> list[ServerReply]:
    """Send statements one by one, because a caller's connection takes no packets of several."""
    if isinstance(connection, pymysql.Connection):
        return send(connection, statements)
    return send(connection, statements, sys.modules["MySQLdb.cursors"].Cursor)


async def send_each_async(connection: Any, statements: Sequence[str]) -> list[ServerReply]:
    """Do the same on a connection of asyncmy."""
    return await send_async(connection, statements)


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


def _refuse_autocommit(connection: Any) -> None:
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
        (reply,) = send_each(connection, ["SELECT @@in_transaction"])
    except errors_of(connection):  # a connection that is lost has lost its transaction, too
        return False
    return bool(reply.rows == [(1,)])
