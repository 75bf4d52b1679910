"""The connections of our pools, and how they are opened."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from math import inf
from time import monotonic
from typing import Any

import psycopg
from psycopg.errors import ConnectionTimeout
from psycopg.rows import TupleRow, tuple_row

from duequeue.stores.sql.commands import BEGIN, QueryEach
from duequeue.stores.sql.connections.watchdog import WatchedPlace
from duequeue.stores.sql.postgres.adapters import register_arrays, register_integers
from duequeue.stores.sql.postgres.errors import interrupt_behind
from duequeue.stores.sql.postgres.settings import PostgresSettings
from duequeue.stores.sql.postgres.statements import statement

NO_LOCK_TIMEOUT = "0"

_connect_until: ContextVar[float] = ContextVar("connect_until", default=inf)


@dataclass(frozen=True)
class PostgresServer:
    """A server with the database and login of some settings; see `watchdog.PooledServer`."""

    settings: PostgresSettings

    @property
    def pool_size(self) -> int:
        """The pool size of the URL."""
        return self.settings.pool_size

    def __str__(self) -> str:
        return f"PostgreSQL at {self.settings.address}"

    def socket_of(self, connection: Any) -> int:
        """Ask the driver's C library."""
        try:
            number: int = connection.pgconn.socket
        except psycopg.Error as error:
            raise OSError("the connection is closed") from error
        return number

    def is_lost(self, connection: Any) -> bool:
        """Ask the driver."""
        lost: bool = connection.broken
        return lost

    def finish(self, connection: Any) -> None:
        """Close without waiting for anything."""
        connection.pgconn.finish()

    def answers(self, seconds: int) -> bool:
        """Connect, and run a statement."""
        arguments = {**self.settings.connection_arguments, "connect_timeout": seconds}
        place = WatchedPlace(self)
        try:
            with (
                psycopg.connect(self.settings.conninfo, **arguments) as connection,
                place.limit(connection, seconds),
            ):
                connection.execute("SELECT 1")
        except ConnectionTimeout:
            return False
        except (psycopg.Error, OSError):
            return not place.is_cut
        return True


class PostgresConnection(psycopg.Connection):
    """A connection of a pool, with a cursor that runs one statement after another.

    A new cursor has to find out again how to send and read each type, which takes a quarter of the
    driver's time. A cursor holds on to the parameters and the result of its last statement, so
    statements with large payloads do not use this one.
    """

    cursor_to_keep: psycopg.Cursor[TupleRow]
    idle_since: float
    limits_lock_waits: bool  # because the URL, the role or the database sets lock_timeout

    @classmethod
    def _connect_gen(cls, *arguments: Any, **options: Any) -> Any:
        # The driver's own timeout is in whole seconds, and at least two of them.
        return _in_time(super()._connect_gen(*arguments, **options), _connect_until.get())

    def __del__(self, *_: Any) -> None:
        """Close without a warning, because an interrupt may lose a connection."""


class AsyncPooledConnection(psycopg.AsyncConnection):
    """The same for awaiting queues."""

    cursor_to_keep: psycopg.AsyncCursor[TupleRow]
    idle_since: float
    limits_lock_waits: bool

    def __del__(self, *_: Any) -> None:
        """Close without a warning, because an event loop may end before its queues are closed."""


def connect(place: WatchedPlace, settings: PostgresSettings) -> PostgresConnection:
    """Open a connection at a place, within the time that its call has left."""
    before = _connect_until.set(inf if place.deadline is None else place.deadline)
    try:
        connection = PostgresConnection.connect(settings.conninfo, **settings.connection_arguments)
    finally:
        _connect_until.reset(before)
    try:
        place.connection = connection  # from here on, the watchdog enforces the deadline
        register_arrays(connection)
        register_integers(connection)
        cursor = connection.cursor_to_keep = cursor_on(connection)
        cursor.execute(settings.first_statements)
        while cursor.nextset():
            pass
        connection.limits_lock_waits = cursor.fetchall()[0][0] != NO_LOCK_TIMEOUT
    except BaseException:
        connection.close()  # it lacks settings that our statements need
        raise
    return connection


async def connect_async(place: WatchedPlace, settings: PostgresSettings) -> AsyncPooledConnection:
    """Do the same as `connect` on the event loop."""
    seconds = inf if place.deadline is None else place.deadline - monotonic()
    try:
        async with asyncio.timeout(seconds if seconds < inf else None):
            connection = await AsyncPooledConnection.connect(
                settings.conninfo, **settings.connection_arguments
            )
    except TimeoutError:
        raise ConnectionTimeout("connection timeout expired") from None
    try:
        place.connection = connection
        register_arrays(connection)
        register_integers(connection)
        cursor = connection.cursor_to_keep = async_cursor_on(connection)
        await cursor.execute(settings.first_statements)
        while cursor.nextset():
            pass
        connection.limits_lock_waits = (await cursor.fetchall())[0][0] != NO_LOCK_TIMEOUT
    except BaseException:
        await connection.close()
        raise
    return connection


def cursor_on(connection: psycopg.Connection[Any]) -> psycopg.Cursor[TupleRow]:
    """Return a cursor of ours, whatever rows and cursors the connection's owner prefers."""
    return psycopg.Cursor(connection, row_factory=tuple_row)


def async_cursor_on(connection: psycopg.AsyncConnection[Any]) -> psycopg.AsyncCursor[TupleRow]:
    """Return a cursor of ours, whatever rows and cursors the connection's owner prefers."""
    return psycopg.AsyncCursor(connection, row_factory=tuple_row)


def _in_time(steps: Generator[Any, Any, Any], gives_up_at: float) -> Generator[Any, Any, Any]:
    """Connect by the driver's steps, which wait up to 0.1 seconds each, and give up in time."""
    try:
        waits_for = next(steps)
        while True:
            ready = yield waits_for
            if monotonic() >= gives_up_at:
                raise ConnectionTimeout("connection timeout expired")
            waits_for = steps.send(ready)
    except StopIteration as done:
        return done.value


def in_turn(
    perform: Callable[..., object],
    connection: psycopg.Connection[Any],
    kept: psycopg.Cursor[TupleRow] | None,
    ends_at: float | None,
    queries: Sequence[QueryEach],
) -> list[Any]:
    """Send all queries before the first reply; until the end, they are one transaction."""
    if kept is None:  # an interrupt would leave a caller's connection inside the pipeline
        return [perform(connection, None, ends_at, each) for each in queries]
    cursors: list[psycopg.Cursor[TupleRow]] = []
    handled = sys.exception()
    try:
        with connection.pipeline():
            for command in queries:
                cursors.append(cursor_on(connection))
                query, parameters = statement(command, ends_at)
                cursors[-1].execute(query, parameters, binary=True)
    except psycopg.Error as error:
        interrupt = interrupt_behind(error, handled)
        if interrupt is None:
            # The driver may note statements as prepared that the server never prepared, and each
            # later call on the connection would fail.
            connection.close()
            raise
        raise interrupt from None
    return [cursor.fetchall() if cursor.rownumber is not None else [] for cursor in cursors]


async def in_turn_async(
    perform: Callable[..., Awaitable[object]],
    connection: psycopg.AsyncConnection[Any],
    kept: psycopg.AsyncCursor[TupleRow] | None,
    ends_at: float | None,
    queries: Sequence[QueryEach],
) -> list[Any]:
    """Send one query after another, because the driver leaves a cancelled pipeline in disorder."""
    await perform(connection, kept, ends_at, BEGIN)
    return [await perform(connection, kept, ends_at, each) for each in queries]
