# Made from borrowed_async.py: change that file, and run `make made`.
"""Blocking sessions inside a transaction that belongs to the caller."""

from math import inf
from typing import Any, Protocol, TypeVar

from duequeue.drive.steps import drive
from duequeue.errors import StoreError
from duequeue.port.store import Operation
from duequeue.stores.sql.connections.given_connection import Check, finder
from duequeue.stores.sql.connections.home import Home

T = TypeVar("T")


class GivenConnection(Protocol):
    """A caller's connection, with its driver's way to run a command."""

    @property
    def closed(self) -> bool:
        """Whether it is closed."""

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """The errors of the driver."""

    def perform(self, command: Any) -> object:
        """Carry out one command."""

    def recall(self) -> object | None:
        """Return what the connection leads to, if that is known already."""

    def look(self) -> object:
        """Ask the connection what it leads to, and keep that as long as the connection exists."""

    def translate(self, error: Any) -> StoreError:
        """Return the DueQueue error for an error of the driver."""


class BorrowedSession:
    """Runs operations on a caller's connection."""

    def __init__(self, given: object, check: Check[GivenConnection], home: Home) -> None:
        self._find = finder(given, check, lambda found: found.closed)
        self.home = home

    def run(
        self,
        operation: Operation[T],
        seconds: float = inf,  # noqa: ARG002 - the caller decides how long it may take
        *,
        consumes: bool = False,  # noqa: ARG002
    ) -> T:
        """Run one operation; the caller commits."""
        connection = self._find()
        try:
            self._admit(connection)
            return drive(operation(), connection.perform)
        except connection.errors as error:
            raise connection.translate(error) from error

    def close(self) -> None:
        """Leave the connection to its owner."""

    def _admit(self, connection: GivenConnection) -> None:
        """Raise unless the connection leads to the database of the queue."""
        identity = connection.recall() or connection.look()
        if identity != self.home.identity:
            self.home.look()
            self.home.require(connection.look())
