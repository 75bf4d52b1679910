"""The same sessions, awaiting."""

import asyncio
from functools import partial
from math import inf
from typing import Any, TypeVar

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow, tuple_row
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from duequeue.drive.steps import drive_async
from duequeue.port.store import Operation
from duequeue.stores.sql.commands import Begin, Command, Execute, Query, QueryEach, Script
from duequeue.stores.sql.postgres.adapters import register_arrays, register_integers
from duequeue.stores.sql.postgres.address import Address
from duequeue.stores.sql.postgres.errors import must_reconnect, translate
from duequeue.stores.sql.postgres.session import MOST_KEPT_BYTES, refuse_autocommit
from duequeue.stores.sql.postgres.settings import BEGIN_STATEMENT, POOL_TIMEOUT, PostgresSettings
from duequeue.stores.sql.postgres.statements import statement

T = TypeVar("T")


class AsyncPooledConnection(psycopg.AsyncConnection):
    """A connection of ours, with a cursor that is used again and again; see `session.py`."""

    cursor_to_keep: psycopg.AsyncCursor[TupleRow]


class AsyncPostgresSession:
    """Runs each operation on a connection of its pool."""

    def __init__(self, settings: PostgresSettings) -> None:
        self._settings = settings
        self._opening = asyncio.Lock()
        self._pool = AsyncConnectionPool(
            settings.conninfo,
            connection_class=AsyncPooledConnection,
            kwargs=settings.connection_arguments,
            min_size=1,
            max_size=settings.pool_size,
            timeout=POOL_TIMEOUT,
            reconnect_timeout=POOL_TIMEOUT,  # the retry policy does the backing off
            configure=self._configure,
            open=False,
        )
        self._opened = False

    async def run(
        self,
        operation: Operation[T],
        seconds: float = inf,  # noqa: ARG002
        *,
        keeps_lease: bool = False,  # noqa: ARG002
    ) -> T:
        """Run one operation; single statements commit by themselves."""
        try:
            connection = await self._connection()
            try:
                result = await drive_async(operation(), partial(self._perform, connection))
                if connection.pgconn.transaction_status != TransactionStatus.IDLE:
                    await connection.commit()
            except BaseException as error:
                await _roll_back(connection, error)
                raise
            finally:
                await self._pool.putconn(connection)
        except psycopg.Error as error:
            raise translate(error, self._settings.address) from error
        return result

    async def close(self) -> None:
        """Close the pool."""
        await self._pool.close()

    async def _perform(self, connection: AsyncPooledConnection, command: Any) -> object:
        """Carry out one command; single statements run without a transaction around them."""
        if isinstance(command, Begin):
            if connection.pgconn.transaction_status == TransactionStatus.IDLE:
                await connection.execute(BEGIN_STATEMENT)
            return None
        return await execute(connection, command, connection.cursor_to_keep)

    async def _connection(self) -> AsyncPooledConnection:
        if not self._opened:
            await self._open()
        cancelled = _cancellations()
        try:
            connection = await self._pool.getconn()
        except PoolTimeout:
            await self._probe()  # raises the reason, if the server is to blame
            raise
        if _cancellations() > cancelled:
            # The pool loses a cancellation that arrives together with a connection.
            await self._pool.putconn(connection)
            raise asyncio.CancelledError
        return connection

    async def _open(self) -> None:
        async with self._opening:
            if not self._opened:
                await self._probe()
                await self._pool.open()
                self._opened = True

    async def _configure(self, connection: AsyncPooledConnection) -> None:
        register_arrays(connection)
        register_integers(connection)
        if self._settings.session_settings:
            await connection.execute(self._settings.session_settings)
        connection.cursor_to_keep = cursor_on(connection)

    async def _probe(self) -> None:
        connection = await psycopg.AsyncConnection.connect(
            self._settings.conninfo, **self._settings.connection_arguments
        )
        await connection.close()


class BorrowedAsyncPostgresSession:
    """Runs operations inside a transaction that belongs to the caller."""

    def __init__(self, connection: object) -> None:
        if not isinstance(connection, psycopg.AsyncConnection):
            raise TypeError(
                f"connection must be a psycopg.AsyncConnection, not {type(connection).__name__}"
            )
        refuse_autocommit(connection)
        register_arrays(connection)
        self._address = Address(connection.info.dsn)
        self._connection = connection

    async def run(
        self,
        operation: Operation[T],
        seconds: float = inf,  # noqa: ARG002
        *,
        keeps_lease: bool = False,  # noqa: ARG002
    ) -> T:
        """Run one operation; the caller commits."""
        try:
            return await drive_async(operation(), self._perform)
        except psycopg.Error as error:
            raise translate(error, self._address) from error

    async def close(self) -> None:
        """Leave the connection to its owner."""

    async def _perform(self, command: Command) -> object:
        if isinstance(command, Begin):
            return None
        return await execute(self._connection, command)


async def execute(
    connection: psycopg.AsyncConnection[Any],
    command: Query | QueryEach | Execute | Script,
    kept: psycopg.AsyncCursor[TupleRow] | None = None,
) -> object:
    """Execute one command; return its rows, or the number of rows that it touched."""
    query, parameters = statement(command)
    payload = b"" if parameters is None else parameters.get("payload", b"")
    if kept is None or isinstance(command, Query | Script) or len(payload) > MOST_KEPT_BYTES:
        cursor = cursor_on(connection)
    else:
        cursor = kept
    # Binary replies need the extended protocol, which takes one statement at a time.
    await cursor.execute(query, parameters, binary=parameters is not None)
    if isinstance(command, Execute):
        return cursor.rowcount
    return await cursor.fetchall() if cursor.rownumber is not None else []


def cursor_on(connection: psycopg.AsyncConnection[Any]) -> psycopg.AsyncCursor[TupleRow]:
    """Return a cursor of ours, whatever rows and cursors the connection's owner prefers."""
    return psycopg.AsyncCursor(connection, row_factory=tuple_row)


def _cancellations() -> int:
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()


async def _roll_back(connection: psycopg.AsyncConnection, error: BaseException) -> None:
    """Undo what the operation did; the pool replaces a connection that is of no more use."""
    try:
        if not connection.closed:
            await connection.rollback()
    except psycopg.Error:
        await connection.close()  # the first error is the one to raise
    if isinstance(error, psycopg.Error) and must_reconnect(error):
        await connection.close()
