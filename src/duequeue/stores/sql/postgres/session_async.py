"""Awaiting sessions on the shared pool of connections."""

from collections.abc import Awaitable, Callable
from functools import cached_property, partial
from math import inf
from typing import Any, TypeAlias, TypeVar

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow

from duequeue.drive.steps import drive_async
from duequeue.port.store import Operation
from duequeue.stores.sql.commands import (
    Begin,
    Execute,
    QueriesInTurn,
    Query,
    QueryEach,
    SqlScript,
)
from duequeue.stores.sql.connections.home_async import AsyncHome
from duequeue.stores.sql.connections.pool_async import shared_pool_async
from duequeue.stores.sql.postgres.connections import (
    PostgresServer,
    async_cursor_on,
    connect_async,
    in_turn_async,
)
from duequeue.stores.sql.postgres.errors import failure, leaves_it_usable
from duequeue.stores.sql.postgres.identity import identify
from duequeue.stores.sql.postgres.settings import BEGIN_STATEMENT, PostgresSettings
from duequeue.stores.sql.postgres.statements import statement

T = TypeVar("T")

MOST_KEPT_BYTES = 64 * 1024
OPEN_TRANSACTION = {TransactionStatus.INTRANS, TransactionStatus.INERROR}

# The arguments are those of `perform`.
AsyncPerform: TypeAlias = Callable[
    [psycopg.AsyncConnection[Any], psycopg.AsyncCursor[TupleRow] | None, float | None, Any],
    Awaitable[object],
]


class AsyncPostgresSession:
    """Runs each operation on a connection of the pool that this event loop shares."""

    def __init__(self, settings: PostgresSettings) -> None:
        self._settings = settings
        self._pool = shared_pool_async(PostgresServer(settings))
        self._pool.join()
        self._perform: AsyncPerform = perform
        self._closed = False

    @cached_property
    def home(self) -> AsyncHome:
        """The database that this session leads to."""
        return AsyncHome(self, "database or schema", self._settings.address, identify)

    async def run(
        self, operation: Operation[T], seconds: float = inf, *, consumes: bool = False
    ) -> T:
        """Run one operation; single statements commit by themselves."""
        place = await self._pool.take(seconds, consumes=consumes)
        try:
            connection = place.connection or await connect_async(place, self._settings)
            ends_at = None if connection.limits_lock_waits else place.deadline
            result = await drive_async(
                operation(),
                partial(self._perform, connection, connection.cursor_to_keep, ends_at),
            )
            if connection.pgconn.transaction_status != TransactionStatus.IDLE:
                await connection.commit()
        except BaseException as error:
            if place.connection is not None:
                await _roll_back(place.connection, error)
            if (translated := failure(error, place, self._settings.address)) is not None:
                raise translated from error
            raise
        finally:
            used = place.connection
            at_rest = used is not None and used.pgconn.transaction_status == TransactionStatus.IDLE
            self._pool.give(place, reusable=at_rest)
        return result

    async def close(self) -> None:
        """Leave the pool, which closes with its last user."""
        if not self._closed:
            self._closed = True
            self._pool.leave()


async def perform(
    connection: psycopg.AsyncConnection[Any],
    kept: psycopg.AsyncCursor[TupleRow] | None,
    ends_at: float | None,
    command: Begin | Query | QueryEach | QueriesInTurn | Execute | SqlScript,
) -> object:
    """Carry out one command; return its rows, or the number of rows that it touched.

    A connection of ours has a cursor that is kept, and begins transactions itself. On a caller's
    connection, the caller has begun one.
    """
    if isinstance(command, Begin):
        if kept is not None and connection.pgconn.transaction_status == TransactionStatus.IDLE:
            await connection.execute(BEGIN_STATEMENT)
        return None
    if isinstance(command, QueriesInTurn):
        return await in_turn_async(perform, connection, kept, ends_at, command.queries)
    query, parameters = statement(command, ends_at)
    payload = b"" if parameters is None else parameters.get("payload", b"")
    if kept is None or isinstance(command, Query | SqlScript) or len(payload) > MOST_KEPT_BYTES:
        kept = async_cursor_on(connection)
    # Binary replies need the extended protocol, which takes one statement at a time.
    await kept.execute(query, parameters, binary=parameters is not None)
    if isinstance(command, Execute):
        return kept.rowcount
    return await kept.fetchall() if kept.rownumber is not None else []


async def _roll_back(connection: psycopg.AsyncConnection, error: BaseException) -> None:
    """Undo what the operation did, or close the connection if it must not be used again."""
    try:
        if connection.pgconn.transaction_status in OPEN_TRANSACTION:
            await connection.rollback()
    except psycopg.Error:
        await connection.close()  # the first error is the one to raise
    if not connection.closed and not leaves_it_usable(error):
        await connection.close()
