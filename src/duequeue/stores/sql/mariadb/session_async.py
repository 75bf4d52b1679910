"""Awaiting sessions on the shared pool of connections."""

from contextlib import suppress
from functools import cached_property, partial
from math import inf
from typing import TypeVar

from duequeue.drive.steps import drive_async
from duequeue.port.store import Operation
from duequeue.stores.sql.connections.home_async import AsyncHome
from duequeue.stores.sql.connections.pool_async import shared_pool_async
from duequeue.stores.sql.connections.watchdog import WatchedPlace
from duequeue.stores.sql.mariadb.connections_async import AsyncMariadbConnection, connect_async
from duequeue.stores.sql.mariadb.conversation import Conversation
from duequeue.stores.sql.mariadb.errors import (
    DEADLOCK,
    DRIVER_ERRORS,
    failure,
    leaves_it_usable,
    number_of,
)
from duequeue.stores.sql.mariadb.identity import identify
from duequeue.stores.sql.mariadb.server import MariadbServer
from duequeue.stores.sql.mariadb.settings import MariadbSettings

T = TypeVar("T")


class AsyncMariadbSession:
    """Runs each operation on a connection of the pool that this event loop shares."""

    conversation = Conversation

    def __init__(self, settings: MariadbSettings) -> None:
        self._settings = settings
        self._pool = shared_pool_async(MariadbServer(settings))
        self._pool.join()
        self._closed = False

    @cached_property
    def home(self) -> AsyncHome:
        """The database that this session leads to."""
        return AsyncHome(self, "database", self._settings.address, identify)

    async def run(
        self, operation: Operation[T], seconds: float = inf, *, consumes: bool = False
    ) -> T:
        """Run one operation; after a deadlock, run it again, and first lock its rows in order."""
        place = await self._pool.take(seconds, consumes=consumes)
        at_rest = False
        try:
            try:
                result = await self._try(operation, place)
            except DRIVER_ERRORS as error:
                if number_of(error) != DEADLOCK:
                    raise
                result = await self._try(operation, place, locks_first=True)
            at_rest = True
        except BaseException as error:
            at_rest = leaves_it_usable(error)
            if (translated := failure(error, place, self._settings.address)) is not None:
                raise translated from error
            raise
        finally:
            connection = place.connection
            self._pool.give(place, reusable=at_rest and connection is not None and connection.open)
        return result

    async def close(self) -> None:
        """Leave the pool, which closes with its last user."""
        if not self._closed:
            self._closed = True
            self._pool.leave()

    async def _try(
        self, operation: Operation[T], place: WatchedPlace, *, locks_first: bool = False
    ) -> T:
        connection: AsyncMariadbConnection = place.connection or await connect_async(
            place, self._settings
        )
        talk = self.conversation(
            connection.facts,
            ends_at=place.ends_at,
            locks_first=locks_first,
            lock_seconds=connection.lock_seconds,
        )
        try:
            result = await drive_async(operation(), partial(_perform, connection, talk))
            if talk.in_transaction or talk.left_behind:
                await drive_async(talk.finish(), connection.send)
        except BaseException as error:
            if leaves_it_usable(error) and connection.open:
                with suppress(*DRIVER_ERRORS):  # the first error is the one to raise
                    await drive_async(talk.give_up(), connection.send)
            raise
        finally:
            connection.lock_seconds = talk.lock_seconds
        return result


async def _perform(
    connection: AsyncMariadbConnection, talk: Conversation, command: object
) -> object:
    return await drive_async(talk.perform(command), connection.send)
