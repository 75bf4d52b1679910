"""Blocking sessions on a pool of psycopg connections, or on the caller's own."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow, tuple_row
from psycopg_pool import ConnectionPool, PoolTimeout

from duequeue.drive.steps import drive
from duequeue.port.store import Operation
from duequeue.stores.sql.commands import Begin, Command, Execute
from duequeue.stores.sql.postgres.adapters import register_arrays, register_integers
from duequeue.stores.sql.postgres.address import Address
from duequeue.stores.sql.postgres.errors import must_reconnect, translate
from duequeue.stores.sql.postgres.settings import BEGIN_STATEMENT, POOL_TIMEOUT, PostgresSettings
from duequeue.stores.sql.postgres.statements import statement

T = TypeVar("T")


class PostgresSession:
    """Runs each operation on a connection of its pool."""

    def __init__(self, settings: PostgresSettings) -> None:
        self._settings = settings
        self._opening = threading.Lock()
        self._pool = ConnectionPool(
            settings.conninfo,
            kwargs=settings.connection_arguments,
            min_size=1,
            max_size=settings.pool_size,
            timeout=POOL_TIMEOUT,
            reconnect_timeout=POOL_TIMEOUT,  # the retry policy does the backing off
            configure=self._configure,
            open=False,
        )
        self._opened = False

    def run(self, operation: Operation[T]) -> T:
        """Run one operation; single statements commit by themselves."""
        with translated(self._settings.address), self._connection() as connection:
            try:
                return drive(operation(), self._performer(connection))
            except psycopg.Error as error:
                if must_reconnect(error):
                    connection.close()
                raise

    def close(self) -> None:
        """Close the pool."""
        self._pool.close()

    @contextmanager
    def _connection(self) -> Iterator[psycopg.Connection]:
        if not self._opened:
            self._open()
        try:
            connection = self._pool.getconn()
        except PoolTimeout:
            self._probe()  # says why, if the server is to blame
            raise
        try:
            with _settled(connection):
                yield connection
        finally:
            self._pool.putconn(connection)

    def _open(self) -> None:
        with self._opening:
            if not self._opened:
                self._probe()
                self._pool.open()
                self._opened = True

    def _configure(self, connection: psycopg.Connection) -> None:
        register_arrays(connection)
        register_integers(connection)
        if self._settings.session_settings:
            connection.execute(self._settings.session_settings)

    def _performer(self, connection: psycopg.Connection) -> Callable[[Any], object]:
        return performer(connection)

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
        self._perform = performer(connection, owned=False)

    def run(self, operation: Operation[T]) -> T:
        """Run one operation; the caller commits."""
        with translated(self._address):
            return drive(operation(), self._perform)

    def close(self) -> None:
        """Leave the connection to its owner."""


def performer(
    connection: psycopg.Connection[Any], *, owned: bool = True
) -> Callable[[Command], object]:
    """Return the function that carries out one command on a connection."""

    def perform(command: Command) -> object:
        if isinstance(command, Begin):
            if owned and connection.pgconn.transaction_status == TransactionStatus.IDLE:
                connection.execute(BEGIN_STATEMENT)
            return None
        query, parameters = statement(command)
        # Binary replies need the extended protocol, which takes one statement at a time.
        binary = parameters is not None
        cursor = cursor_on(connection)
        cursor.execute(query, parameters, binary=binary)
        if isinstance(command, Execute):
            return cursor.rowcount
        return cursor.fetchall() if cursor.rownumber is not None else []

    return perform


def cursor_on(connection: psycopg.Connection[Any]) -> psycopg.Cursor[TupleRow]:
    """Return a cursor of ours, whatever rows and cursors the connection's owner prefers."""
    return psycopg.Cursor(connection, row_factory=tuple_row)


@contextmanager
def translated(address: Address) -> Iterator[None]:
    """Turn the driver's errors into ours."""
    try:
        yield
    except psycopg.Error as error:
        raise translate(error, address) from error


def refuse_autocommit(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
    """Raise unless what runs on this connection waits for the caller's commit."""
    idle = connection.pgconn.transaction_status == TransactionStatus.IDLE
    if connection.autocommit and idle:
        raise ValueError(
            "connection has no open transaction: use it inside `with connection.transaction():`"
        )


@contextmanager
def _settled(connection: psycopg.Connection) -> Iterator[None]:
    try:
        yield
    except BaseException:
        _roll_back(connection)
        raise
    if connection.pgconn.transaction_status != TransactionStatus.IDLE:
        connection.commit()


def _roll_back(connection: psycopg.Connection) -> None:
    try:
        if not connection.closed:
            connection.rollback()
    except psycopg.Error:
        connection.close()  # what went wrong first is what counts; the pool replaces it
