"""The same sessions, awaiting, on psycopg or asyncpg."""

from math import inf
from typing import TypeVar

import psycopg

from duequeue.drive.steps import drive_async
from duequeue.errors import InvalidArgument
from duequeue.port.store import Operation
from duequeue.stores.sql.connections.given_connection import (
    ASYNCPG,
    async_finder,
    async_refused,
    is_a,
)
from duequeue.stores.sql.postgres.given_asyncpg import AsyncDriver, AsyncpgDriver, PsycopgDriver
from duequeue.stores.sql.postgres.identity import AsyncHome, Identity, identify, recall, remember

T = TypeVar("T")

ACCEPTED = (
    "a psycopg.AsyncConnection, an asyncpg connection, or an SQLAlchemy AsyncSession or "
    "AsyncConnection over psycopg or asyncpg"
)


class BorrowedAsyncPostgresSession:
    """Runs operations on a caller's connection."""

    def __init__(self, given: object, home: AsyncHome) -> None:
        self._find = async_finder(given, _driver_for)
        self.home = home
        if isinstance(given, psycopg.AsyncConnection) and given.closed:
            raise InvalidArgument("connection", "is closed")

    async def run(
        self,
        operation: Operation[T],
        seconds: float = inf,  # noqa: ARG002 - the caller decides how long it may take
        *,
        consumes: bool = False,  # noqa: ARG002
    ) -> T:
        """Run one operation; the caller commits."""
        driver = await self._find()
        try:
            await self._admit(driver)
            return await drive_async(operation(), driver.perform)
        except driver.errors as error:
            raise driver.translate(error, self.home.address) from error

    async def close(self) -> None:
        """Leave the connection to its owner."""

    async def _admit(self, driver: AsyncDriver) -> None:
        """Raise unless the connection leads to the database of the queue."""
        identity = recall(driver.connection, driver.search_path) or await _look(driver)
        if identity != self.home.identity:
            await self.home.look()
            self.home.require(await _look(driver))


def _driver_for(given: object) -> AsyncDriver:
    if isinstance(given, psycopg.AsyncConnection):
        return PsycopgDriver(given)
    if is_a(given, ASYNCPG):
        return AsyncpgDriver(given)
    raise async_refused(given, ACCEPTED)


async def _look(driver: AsyncDriver) -> Identity:
    driver.prepare()
    identity = await drive_async(identify(), driver.perform)
    return remember(driver.connection, identity, driver.search_path)
