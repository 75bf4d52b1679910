"""The same sessions, awaiting."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow, tuple_row
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from duequeue.drive.steps import drive_async
from duequeue.port.store import Operation
from duequeue.stores.sql.commands import Begin, Command, Execute
from duequeue.stores.sql.postgres.adapters import register_arrays, register_integers
from duequeue.stores.sql.postgres.address import Address
from duequeue.stores.sql.postgres.errors import must_reconnect
from duequeue.stores.sql.postgres.session import refuse_autocommit, translated
from duequeue.stores.sql.postgres.settings import BEGIN_STATEMENT, POOL_TIMEOUT, PostgresSettings
from duequeue.stores.sql.postgres.statements import statement

T = TypeVar("T")


class AsyncPostgresSession:
    """Runs each operation on a connection of its pool."""

    def __init__(self, settings: PostgresSettings) -> None:
        self._settings = settings
        self._opening = asyncio.Lock()
        self._pool = AsyncConnectionPool(
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

    async def run(self, operation: Operation[T]) -> T:
        """Run one operation; single statements commit by themselves."""
        with translated(self._settings.address):
            async with self._connection() as connection:
                try:
                    return await drive_async(operation(), performer(connection))
                except psycopg.Error as error:
                    if must_reconnect(error):
                        await connection.close()
                    raise

    async def close(self) -> None:
        """Close the pool."""
        await self._pool.close()

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[psycopg.AsyncConnection]:
        if not self._opened:
            await self._open()
        cancelled = _cancellations()
        try:
            connection = await self._pool.getconn()
        except PoolTimeout:
            await self._probe()  # says why, if the server is to blame
            raise
        try:
            if _cancellations() > cancelled:
                # A cancellation that arrives together with a connection is lost in the pool.
                raise asyncio.CancelledError
            async with _settled(connection):
                yield connection
        finally:
            await self._pool.putconn(connection)

    async def _open(self) -> None:
        async with self._opening:
            if not self._opened:
                await self._probe()
                await self._pool.open()
                self._opened = True

    async def _configure(self, connection: psycopg.AsyncConnection) -> None:
        register_arrays(connection)
        register_integers(connection)
        if self._settings.session_settings:
            await connection.execute(self._settings.session_settings)

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
        self._perform = performer(connection, owned=False)

    async def run(self, operation: Operation[T]) -> T:
        """Run one operation; the caller commits."""
        with translated(self._address):
            return await drive_async(operation(), self._perform)

    async def close(self) -> None:
        """Leave the connection to its owner."""


def performer(
    connection: psycopg.AsyncConnection[Any], *, owned: bool = True
) -> Callable[[Command], Awaitable[object]]:
    """Return the function that carries out one command on a connection."""

    async def perform(command: Command) -> object:
        if isinstance(command, Begin):
            if owned and connection.pgconn.transaction_status == TransactionStatus.IDLE:
                await connection.execute(BEGIN_STATEMENT)
            return None
        query, parameters = statement(command)
        # Binary replies need the extended protocol, which takes one statement at a time.
        binary = parameters is not None
        cursor = cursor_on(connection)
        await cursor.execute(query, parameters, binary=binary)
        if isinstance(command, Execute):
            return cursor.rowcount
        return await cursor.fetchall() if cursor.rownumber is not None else []

    return perform


def cursor_on(connection: psycopg.AsyncConnection[Any]) -> psycopg.AsyncCursor[TupleRow]:
    """Return a cursor of ours, whatever rows and cursors the connection's owner prefers."""
    return psycopg.AsyncCursor(connection, row_factory=tuple_row)


def _cancellations() -> int:
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()


@asynccontextmanager
async def _settled(connection: psycopg.AsyncConnection) -> AsyncIterator[None]:
    try:
        yield
    except BaseException:
        await _roll_back(connection)
        raise
    if connection.pgconn.transaction_status != TransactionStatus.IDLE:
        await connection.commit()


async def _roll_back(connection: psycopg.AsyncConnection) -> None:
    try:
        if not connection.closed:
            await connection.rollback()
    except psycopg.Error:
        await connection.close()  # what went wrong first is what counts; the pool replaces it
