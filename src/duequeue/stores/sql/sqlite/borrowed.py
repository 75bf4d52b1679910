"""Blocking sessions inside a transaction that belongs to the caller."""

import sqlite3
from math import inf
from pathlib import Path
from typing import Any, Protocol, TypeVar

from duequeue.drive.steps import drive
from duequeue.errors import InvalidArgument, WrongDatabase
from duequeue.port.store import Operation, Steps
from duequeue.stores.sql.commands import Query, Row
from duequeue.stores.sql.connections.given_connection import finder, refused
from duequeue.stores.sql.migrations import missing_tables
from duequeue.stores.sql.sqlite.errors import translate
from duequeue.stores.sql.sqlite.session import Performer

T = TypeVar("T")

GIVEN = "the given connection"
ACCEPTED = (
    "a sqlite3.Connection, an SQLAlchemy Session or Connection over sqlite3, or a Django "
    "connection over sqlite3 or its alias"
)


class HasTransaction(Protocol):
    """What a connection of `sqlite3` and one of `aiosqlite` have in common."""

    @property
    def in_transaction(self) -> bool: ...
    @property
    def isolation_level(self) -> str | None: ...


class BorrowedSqliteSession:
    """Runs operations on a caller's connection to a file."""

    def __init__(self, given: object, path: str) -> None:
        self._find = finder(given, _checked, lambda _: False)  # the check has asked for that
        self._path = path
        self._admitted: object = None

    def run(
        self,
        operation: Operation[T],
        seconds: float = inf,  # noqa: ARG002 - the caller decides how long the transaction takes
        *,
        consumes: bool = False,  # noqa: ARG002 - the connection is the caller's
    ) -> T:
        """Run one operation; the caller commits."""
        connection = self._find()
        perform = Performer(connection)
        text_factory, connection.text_factory = connection.text_factory, str
        try:
            if connection is not self._admitted:
                drive(admit(self._path), perform)
                self._admitted = connection
            return drive(operation(), perform)
        except sqlite3.Error as error:
            raise translate(error, GIVEN) from error
        finally:
            connection.text_factory = text_factory

    def close(self) -> None:
        """Leave the connection to its owner."""


def admit(path: str) -> Steps[None]:
    """Raise unless a connection finds our tables in this file."""
    rows: list[Row] = yield Query("identify_database")
    if not rows:
        raise missing_tables(f"the database of {GIVEN}")
    (file,) = rows[0]
    if not file or not Path(file).samefile(path):
        raise WrongDatabase(
            f"connection leads to another database, {file or 'in memory'}, and the queue is in "
            f"{path}; nothing was stored: open the queue with the URL of the connection's file"
        )


def refuse_autocommit(connection: HasTransaction, autocommit: object) -> None:
    """Raise unless what runs on this connection waits for the caller's commit."""
    # `autocommit` is new in Python 3.12 and overrules the older `isolation_level`.
    commits_by_itself = autocommit is True or connection.isolation_level is None
    if not connection.in_transaction and commits_by_itself:
        raise InvalidArgument("connection", "has no open transaction: execute BEGIN on it first")


def _checked(given: Any) -> sqlite3.Connection:
    if not isinstance(given, sqlite3.Connection):
        raise refused(given, ACCEPTED)
    try:
        refuse_autocommit(given, getattr(given, "autocommit", None))
    except sqlite3.ProgrammingError as error:
        if "closed" not in str(error):
            raise
        raise InvalidArgument("connection", "is closed") from error
    return given
