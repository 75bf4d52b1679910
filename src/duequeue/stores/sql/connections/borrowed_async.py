"""Awaiting sessions inside a transaction that belongs to the caller."""

from math import inf
from typing import Any, Protocol, TypeVar

from duequeue.drive.steps import drive_async
from duequeue.errors import StoreError
from duequeue.port.store import Operation
from duequeue.stores.sql.connections.given_connection import Check, async_finder
from duequeue.stores.sql.connections.home_async import AsyncHome

T = TypeVar("T")


class AsyncGivenConnection(Protocol):
    """A caller's connection, with its driver's way to run a command."""

    @property
    def closed(self) -> bool:
        """Whether it is closed."""

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """The errors of the driver."""

    async def perform(self, command: Any) -> object:
        """Carry out one command."""

    async def recall(self) -> object | None:
        """Return what the connection leads to, if that is known already."""

    async def look(self) -> object:
        """Ask the connection what it leads to, and keep that as long as the connection exists."""

    def translate(self, error: Any) -> StoreError:
        """Return the DueQueue error for an error of the driver."""


class AsyncBorrowedSession:
    """Runs operations on a caller's connection."""

    def __init__(self, given: object, check: Check[AsyncGivenConnection], home: AsyncHome) -> None:
        self._find = async_finder(given, check, lambda found: found.closed)
        self.home = home

    async def run(
        self,
        operation: Operation[T],
        seconds: float = inf,  # noqa: ARG002 - the caller decides how long it may take
        *,
        consumes: bool = False,  # noqa: ARG002
    ) -> T:
        """Run one operation; the caller commits."""
        connection = await self._find()
        try:
            await self._admit(connection)
            return await drive_async(operation(), connection.perform)
        except connection.errors as error:
            raise connection.translate(error) from error

    async def close(self) -> None:
        """Leave the connection to its owner."""

    async def _admit(self, connection: AsyncGivenConnection) -> None:
        """Raise unless the connection leads to the database of the queue."""
        identity = await connection.recall() or await connection.look()
        if identity != self.home.identity:
            await self.home.look()
            self.home.require(await connection.look())
