"""Blocking sessions inside a transaction that belongs to the caller."""

from functools import partial
from math import inf
from typing import Any, TypeVar

import psycopg
from psycopg.pq import TransactionStatus

from duequeue.drive.steps import drive
from duequeue.errors import InvalidArgument
from duequeue.port.store import Operation
from duequeue.stores.sql.connections.given_connection import finder, refused
from duequeue.stores.sql.postgres.adapters import register_arrays
from duequeue.stores.sql.postgres.errors import translate
from duequeue.stores.sql.postgres.identity import Home, Identity, identify, recall, remember
from duequeue.stores.sql.postgres.session import perform

T = TypeVar("T")

ACCEPTED = (
    "a psycopg.Connection, an SQLAlchemy Session or Connection over psycopg, or a Django "
    "connection over psycopg or its alias"
)


class BorrowedPostgresSession:
    """Runs operations on a caller's connection."""

    def __init__(self, given: object, home: Home) -> None:
        self._find = finder(given, _checked)
        self.home = home
        if self._find().closed:
            raise InvalidArgument("connection", "is closed")

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
            return drive(operation(), partial(perform, connection, None, None))
        except psycopg.Error as error:
            raise translate(error, self.home.address) from error

    def close(self) -> None:
        """Leave the connection to its owner."""

    def _admit(self, connection: psycopg.Connection[Any]) -> None:
        """Raise unless the connection leads to the database of the queue."""
        identity = recall(connection, search_path_of(connection)) or _look(connection)
        if identity != self.home.identity:
            self.home.look()
            self.home.require(_look(connection))


def search_path_of(
    connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any],
) -> str | None:
    """Return the search path of a connection, which servers report since PostgreSQL 18."""
    path = connection.pgconn.parameter_status(b"search_path")
    return None if path is None else path.decode()


def refuse_autocommit(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
    """Raise unless what runs on this connection waits for the caller's commit."""
    idle = connection.pgconn.transaction_status == TransactionStatus.IDLE
    if connection.autocommit and idle:
        raise InvalidArgument(
            "connection", "has no open transaction: use it inside `with connection.transaction():`"
        )


def _checked(given: object) -> psycopg.Connection[Any]:
    if not isinstance(given, psycopg.Connection):
        raise refused(given, ACCEPTED)
    refuse_autocommit(given)
    return given


def _look(connection: psycopg.Connection[Any]) -> Identity:
    register_arrays(connection)
    identity = drive(identify(), partial(perform, connection, None, None))
    return remember(connection, identity, search_path_of(connection))
