"""The connections of asyncpg that `within` takes.

asyncpg is imported by its user and not by us. It numbers its parameters, takes Python's lists as
arrays, and asks the server for the type of each parameter. So each scalar is sent with the type
that psycopg would give it.
"""

import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import psycopg

from duequeue.drive.steps import drive_async
from duequeue.errors import InvalidArgument, StoreError
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
from duequeue.stores.sql.postgres.errors import translate
from duequeue.stores.sql.postgres.identity import Identity, identify, recall, remember
from duequeue.stores.sql.postgres.settings import Address
from duequeue.stores.sql.postgres.statements import texts

_PARAMETER = re.compile(r":([a-z_]+)")
# Every integer is a bigint, as on our own connections.
_TYPES: Mapping[type, str] = {bool: "boolean", int: "bigint", str: "text", bytes: "bytea"}


class GivenAsyncpg:
    """A caller's connection of asyncpg, or of its pool; see `connections.borrowed_async`."""

    closed = False  # because a closed one is refused at once

    def __init__(self, connection: Any, address: Address) -> None:
        if connection.is_closed():
            raise InvalidArgument("connection", "is closed")
        if not connection.is_in_transaction():
            raise InvalidArgument(
                "connection",
                "has no open transaction: use it inside `async with connection.transaction():`",
            )
        self._given = connection
        # A pool lends the same connection each time inside another object.
        self._connection = getattr(connection, "_con", connection)
        self._address = address
        self._asyncpg: Any = sys.modules["asyncpg"]

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """The errors of asyncpg."""
        return (self._asyncpg.PostgresError, self._asyncpg.InterfaceError)

    async def perform(self, command: Command) -> object:
        """Carry out one command."""
        match command:
            case Query(name, parameters):
                return await self._fetch(name, parameters)
            case QueryEach(name, parameters, columns, each):
                lists = dict(zip(columns, map(list, zip(*each, strict=True)), strict=True))
                return await self._fetch(name, {**parameters, **lists})
            case QueriesInTurn(queries):
                return [await self.perform(query) for query in queries]
            case Execute(name, parameters):
                query, values = numbered(texts()[name], parameters)
                status: str = await self._given.execute(query, *values)
                return int(status.rpartition(" ")[2])
            case SqlScript(text):
                await self._given.execute(text)
            case Begin():
                pass
        return None

    async def recall(self) -> Identity | None:
        """Return what the connection leads to, if that is known already."""
        return recall(self._connection, self._search_path)

    async def look(self) -> Identity:
        """Ask the connection what it leads to, and keep that as long as the connection exists."""
        identity = await drive_async(identify(), self.perform)
        return remember(self._connection, identity, self._search_path)

    def translate(self, error: Any) -> StoreError:
        """Return the DueQueue error for what psycopg would have raised."""
        code = getattr(error, "sqlstate", None)
        kind = psycopg.InterfaceError if code is None else _error_with(code)
        return translate(kind(str(error)), self._address)

    @property
    def _search_path(self) -> str | None:
        """The search path, if the server reports it."""
        return getattr(self._given.get_settings(), "search_path", None)

    async def _fetch(self, name: str, parameters: Parameters) -> list[Row]:
        query, values = numbered(texts()[name], parameters)
        return [tuple(row) for row in await self._given.fetch(query, *values)]


def _error_with(code: str) -> type[psycopg.Error]:
    """Return psycopg's error for a code, which a trigger of the user's may have made up."""
    try:
        return psycopg.errors.lookup(code)
    except KeyError:
        return psycopg.DatabaseError


def numbered(query: str, parameters: Parameters) -> tuple[str, Sequence[Any]]:
    """Return a query with numbers in place of the names of its parameters, and their values."""
    names = list(dict.fromkeys(_PARAMETER.findall(query)))

    def number(found: re.Match[str]) -> str:
        sql_type = _TYPES.get(type(parameters[found[1]]))
        placeholder = f"${names.index(found[1]) + 1}"
        return placeholder if sql_type is None else f"CAST({placeholder} AS {sql_type})"

    return _PARAMETER.sub(number, query), [parameters[name] for name in names]
