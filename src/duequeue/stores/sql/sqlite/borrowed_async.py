"""The same sessions on connections of `aiosqlite`, each of which has a thread of its own."""

import sqlite3
from math import inf
from typing import Any, TypeVar

from duequeue.drive.steps import drive_async
from duequeue.errors import InvalidArgument
from duequeue.port.store import Operation
from duequeue.stores.sql.commands import (
    Begin,
    Command,
    Execute,
    Parameters,
    QueriesInTurn,
    Query,
    QueryEach,
    Row,
    SqlScript,
)
from duequeue.stores.sql.connections.given_connection import (
    AIOSQLITE,
    async_finder,
    async_refused,
    is_a,
)
from duequeue.stores.sql.sqlite.borrowed import GIVEN, admit, refuse_autocommit
from duequeue.stores.sql.sqlite.errors import translate
from duequeue.stores.sql.sqlite.session import QUERIES, statements

T = TypeVar("T")

ACCEPTED = (
    "a sqlite3.Connection, an aiosqlite.Connection, or an SQLAlchemy AsyncSession or "
    "AsyncConnection over aiosqlite"
)


class BorrowedAsyncSqliteSession:
    """Runs operations on a caller's connection to a file."""

    def __init__(self, given: object, path: str) -> None:
        self._find = async_finder(given, _checked, lambda _: False)  # the check has asked for that
        self._path = path
        self._admitted: object = None

    async def run(
        self,
        operation: Operation[T],
        seconds: float = inf,  # noqa: ARG002 - the caller decides how long the transaction takes
        *,
        consumes: bool = False,  # noqa: ARG002 - the connection is the caller's
    ) -> T:
        """Run one operation; the caller commits."""
        connection = await self._find()
        if not connection.in_transaction:
            refuse_autocommit(connection, await _autocommit_of(connection))
        perform = AiosqlitePerformer(connection)
        text_factory, connection.text_factory = connection.text_factory, str
        try:
            if connection is not self._admitted:
                await drive_async(admit(self._path), perform)
                self._admitted = connection
            return await drive_async(operation(), perform)
        except sqlite3.Error as error:
            raise translate(error, GIVEN) from error
        finally:
            connection.text_factory = text_factory

    async def close(self) -> None:
        """Leave the connection to its owner."""


class AiosqlitePerformer:
    """Carries out commands on a borrowed connection."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def __call__(self, command: Command) -> object:
        """Carry out one command."""
        match command:
            case Query(name, parameters):
                return await self._rows_of(QUERIES[name], parameters)
            case QueryEach():
                return await self._query_each(command)
            case QueriesInTurn(queries):
                return [await self._query_each(each) for each in queries]
            case Execute(name, parameters):
                async with self._connection.execute(QUERIES[name], parameters) as cursor:
                    return cursor.rowcount
            case SqlScript(text):
                for statement in statements(text):
                    await self._connection.execute(statement)
            case Begin():
                pass
        return None

    async def _query_each(self, command: QueryEach) -> list[Row]:
        rows: list[Row] = []
        for values in command.each:
            each = dict(zip(command.columns, values, strict=True))
            rows += await self._rows_of(QUERIES[command.name], {**command.parameters, **each})
        return rows

    async def _rows_of(self, query: str, parameters: Parameters) -> list[Row]:
        async with self._connection.cursor() as cursor:
            cursor.row_factory = None  # for plain tuples, whatever the owner prefers
            await cursor.execute(query, parameters)
            return list(await cursor.fetchall())


async def _autocommit_of(connection: Any) -> object:
    """Return the mode that is new in Python 3.12; only the connection's thread may ask for it."""
    return await connection._execute(getattr, connection._conn, "autocommit", None)  # noqa: SLF001 - there is no public way


def _checked(given: Any) -> Any:
    if not is_a(given, AIOSQLITE):
        raise async_refused(given, ACCEPTED)
    try:
        refuse_autocommit(given, None)
    except (ValueError, sqlite3.ProgrammingError) as error:
        if "no open transaction" in str(error):
            raise
        raise InvalidArgument("connection", "is closed") from error
    return given
