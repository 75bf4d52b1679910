"""Our own awaiting connections, through asyncmy."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from math import inf
from time import monotonic
from typing import Any

from asyncmy.connection import Connection
from asyncmy.cursors import Cursor
from asyncmy.errors import MySQLError, OperationalError

from duequeue.stores.sql.connections.watchdog import WatchedPlace
from duequeue.stores.sql.mariadb.connections import facts_from, first_statements, may_try_next
from duequeue.stores.sql.mariadb.errors import CANNOT_CONNECT
from duequeue.stores.sql.mariadb.replies import ServerReply, reply_of_result
from duequeue.stores.sql.mariadb.server import ServerFacts
from duequeue.stores.sql.mariadb.settings import Host, MariadbSettings


class AsyncMariadbConnection(Connection):
    """A connection of a pool."""

    idle_since: float
    facts: ServerFacts
    lock_seconds: int

    def __init__(self, settings: MariadbSettings, host: Host, limit: float) -> None:
        super().__init__(  # type: ignore[no-untyped-call]
            host=host.name,
            port=host.port,
            connect_timeout=limit,
            ssl=settings.ssl_context if settings.must_encrypt else None,
            **settings.arguments,
        )

    async def send(self, statements: Sequence[str]) -> list[ServerReply]:
        """Send statements in one packet, and return the reply to each.

        A cancelled caller still waits for the reply. The driver would only close the connection,
        and the server would carry the statements out later, perhaps after those of the next call.
        """
        sending = asyncio.ensure_future(send_async(self, [";".join(statements)]))
        try:
            return await asyncio.shield(sending)
        except asyncio.CancelledError:
            try:
                await asyncio.wait([sending])
            finally:
                if not sending.cancel():  # only if the caller is cancelled again
                    sending.exception()
            raise

    @property
    def open(self) -> bool:
        """Whether the connection can be used."""
        return self.connected and not self.is_lost()

    def socket_number(self) -> int:
        """Return the file descriptor; raise OSError if there is none any more."""
        transport = self._transport  # type: ignore[attr-defined]
        line = None if transport is None else transport.get_extra_info("socket")
        if line is None or line.fileno() < 0:
            raise OSError("the connection is closed")
        number: int = line.fileno()
        return number

    def is_lost(self) -> bool:
        """Return whether the driver gave the connection up, or the server ended it."""
        is_closed = self._transport is None  # type: ignore[attr-defined]
        return is_closed or bool(self._stream_broken)  # type: ignore[attr-defined]

    def finish(self) -> None:
        """Close; the event loop may have ended before."""
        with suppress(RuntimeError):
            self.close()


async def send_async(connection: Any, texts: Sequence[str]) -> list[ServerReply]:
    """Send texts one after the other, and return the reply to each statement in them."""
    cursor = connection.cursor(Cursor)
    replies = []
    for text in texts:
        await cursor.execute(text)
        replies.append(reply_of_result(cursor._result))  # noqa: SLF001
        while await cursor.nextset():
            replies.append(reply_of_result(cursor._result))  # noqa: SLF001
    return replies


async def connect_async(place: WatchedPlace, settings: MariadbSettings) -> AsyncMariadbConnection:
    """Connect to the first host that can be used, within the time that the call has left."""
    seconds = inf if place.deadline is None else place.deadline - monotonic()
    hosts = list(settings.address.hosts)
    while True:
        host = hosts.pop(0)
        limit = max(min(settings.connect_seconds, seconds / (len(hosts) + 1)), 0.001)
        connection: AsyncMariadbConnection = AsyncMariadbConnection(settings, host, limit)
        place.connection = connection
        try:
            async with asyncio.timeout(limit):
                await _open(connection)
            is_writable = await _prepare(connection, settings)
            if is_writable or not hosts:
                return connection
        except TimeoutError:
            connection.finish()
            if not hosts:
                raise OperationalError(CANNOT_CONNECT, f"connecting to {host} timed out") from None
        except MySQLError as error:
            connection.finish()
            if not hosts or not may_try_next(error):
                raise
        except BaseException:
            connection.finish()
            raise
        connection.finish()


async def _open(connection: AsyncMariadbConnection) -> None:
    """Open a connection; on Python 3.11, the driver's `wait_for` may swallow a cancellation."""
    task = asyncio.current_task()
    cancelled_before = 0 if task is None else task.cancelling()
    await connection.connect()  # type: ignore[unused-awaitable]
    if task is not None and task.cancelling() > cancelled_before:
        raise asyncio.CancelledError


async def _prepare(connection: AsyncMariadbConnection, settings: MariadbSettings) -> bool:
    version = str(connection.get_server_info())
    replies = await connection.send(first_statements(version, settings.read_seconds))
    connection.facts, is_writable, more = facts_from(version, replies)
    connection.lock_seconds = connection.facts.lock_seconds
    await connection.send(more)
    return is_writable
