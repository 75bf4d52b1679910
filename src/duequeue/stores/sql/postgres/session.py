"""Blocking sessions on a pool of psycopg connections, or on the caller's own."""

import threading
from functools import partial
from math import inf
from typing import Any, TypeVar

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow, tuple_row
from psycopg_pool import ConnectionPool, PoolTimeout

from duequeue.drive.steps import drive
from duequeue.port.store import Operation
from duequeue.stores.sql.commands import (
    Begin,
    Command,
    Execute,
    Query,
    QueryEach,
    Script,
)
from duequeue.stores.sql.postgres.adapters import register_arrays, register_integers
from duequeue.stores.sql.postgres.address import Address
from duequeue.stores.sql.postgres.errors import must_reconnect, translate
from duequeue.stores.sql.postgres.settings import BEGIN_STATEMENT, POOL_TIMEOUT, PostgresSettings
from duequeue.stores.sql.postgres.statements import statement

T = TypeVar("T")

MOST_KEPT_BYTES = 64 * 1024


class PooledConnection(psycopg.Connection):
    """A connection of ours, with a cursor that is used again and again.

    A new cursor has to find out again how to send and read each type, which takes a quarter of the
    driver's time. A cursor holds on to the parameters and the result of its last statement, so
    statements with large payloads do not use this one.
    """

    cursor_to_keep: psycopg.Cursor[TupleRow]


class PostgresSession:
    """Runs each operation on a connection of its pool."""

    def __init__(self, settings: PostgresSettings) -> None:
        self._settings = settings
        self._opening = threading.Lock()
        self._pool = ConnectionPool(
            settings.conninfo,
            connection_class=PooledConnection,
            kwargs=settings.connection_arguments,
            min_size=1,
            max_size=settings.pool_size,
            timeout=POOL_TIMEOUT,
            reconnect_timeout=POOL_TIMEOUT,  # the retry policy does the backing off
            configure=self._configure,
            open=False,
        )
        self._opened = False

    def run(
        self,
        operation: Operation[T],
        seconds: float = inf,  # noqa: ARG002
        *,
        keeps_lease: bool = False,  # noqa: ARG002
    ) -> T:
        """Run one operation; single statements commit by themselves."""
        try:
            connection = self._connection()
            try:
                result = drive(operation(), partial(self._perform, connection))
                if connection.pgconn.transaction_status != TransactionStatus.IDLE:
                    connection.commit()
            except BaseException as error:
                _roll_back(connection, error)
                raise
            finally:
                self._pool.putconn(connection)
        except psycopg.Error as error:
            raise translate(error, self._settings.address) from error
        return result

    def close(self) -> None:
        """Close the pool."""
        self._pool.close()

    def _perform(self, connection: PooledConnection, command: Any) -> object:
        """Carry out one command; single statements run without a transaction around them."""
        if isinstance(command, Begin):
            if connection.pgconn.transaction_status == TransactionStatus.IDLE:
                connection.execute(BEGIN_STATEMENT)
            return None
        return execute(connection, command, connection.cursor_to_keep)

    def _connection(self) -> PooledConnection:
        if not self._opened:
            self._open()
        try:
            return self._pool.getconn()
        except PoolTimeout:
            self._probe()  # raises the reason, if the server is to blame
            raise

    def _open(self) -> None:
        with self._opening:
            if not self._opened:
                self._probe()
                self._pool.open()
                self._opened = True

    def _configure(self, connection: PooledConnection) -> None:
        register_arrays(connection)
        register_integers(connection)
        if self._settings.session_settings:
            connection.execute(self._settings.session_settings)
        connection.cursor_to_keep = cursor_on(connection)

    def _probe(self) -> None:
        psycopg.connect(self._settings.conninfo, **self._settings.connection_arguments).close()


class BorrowedPostgresSession:
    """Runs operations inside a transaction that belongs to the caller."""

    def __init__(self, connection: object) -> None:
        if not isinstance(connection, psycopg.Connection):
            raise TypeError(
                f"connection must be a psycopg.Connection, not {type(connection).__name__}"
            )
        refuse_autocommit(connection)
        register_arrays(connection)
        self._address = Address(connection.info.dsn)
        self._perform = partial(perform_borrowed, connection)

    def run(
        self,
        operation: Operation[T],
        seconds: float = inf,  # noqa: ARG002
        *,
        keeps_lease: bool = False,  # noqa: ARG002
    ) -> T:
        """Run one operation; the caller commits."""
        try:
            return drive(operation(), self._perform)
        except psycopg.Error as error:
            raise translate(error, self._address) from error

    def close(self) -> None:
        """Leave the connection to its owner."""


def perform_borrowed(connection: psycopg.Connection[Any], command: Command) -> object:
    """Carry out one command in a transaction that the caller has begun."""
    return None if isinstance(command, Begin) else execute(connection, command)


def execute(
    connection: psycopg.Connection[Any],
    command: Query | QueryEach | Execute | Script,
    kept: psycopg.Cursor[TupleRow] | None = None,
) -> object:
    """Execute one command; return its rows, or the number of rows that it touched."""
    query, parameters = statement(command)
    payload = b"" if parameters is None else parameters.get("payload", b"")
    if kept is None or isinstance(command, Query | Script) or len(payload) > MOST_KEPT_BYTES:
        cursor = cursor_on(connection)
    else:
        cursor = kept
    # Binary replies need the extended protocol, which takes one statement at a time.
    cursor.execute(query, parameters, binary=parameters is not None)
    if isinstance(command, Execute):
        return cursor.rowcount
    return cursor.fetchall() if cursor.rownumber is not None else []


def cursor_on(connection: psycopg.Connection[Any]) -> psycopg.Cursor[TupleRow]:
    """Return a cursor of ours, whatever rows and cursors the connection's owner prefers."""
    return psycopg.Cursor(connection, row_factory=tuple_row)


def refuse_autocommit(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
    """Raise unless what runs on this connection waits for the caller's commit."""
    idle = connection.pgconn.transaction_status == TransactionStatus.IDLE
    if connection.autocommit and idle:
        raise ValueError(
            "connection has no open transaction: use it inside `with connection.transaction():`"
        )


def _roll_back(connection: psycopg.Connection, error: BaseException) -> None:
    """Undo what the operation did; the pool replaces a connection that is of no more use."""
    try:
        if not connection.closed:
            connection.rollback()
    except psycopg.Error:
        connection.close()  # the first error is the one to raise
    if isinstance(error, psycopg.Error) and must_reconnect(error):
        connection.close()
