"""The awaiting connections that `within` takes, each with its driver's way to run a command.

asyncpg is imported by its user and not by us. It numbers its parameters, takes Python's lists as
arrays, and asks the server for the type of each parameter. So each scalar is sent with the type
that psycopg would give it.
"""

import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import psycopg

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
from duequeue.stores.sql.postgres.accepted import refuse_autocommit, search_path_of
from duequeue.stores.sql.postgres.adapters import register_arrays
from duequeue.stores.sql.postgres.errors import translate
from duequeue.stores.sql.postgres.session_async import perform
from duequeue.stores.sql.postgres.settings import Address
from duequeue.stores.sql.postgres.statements import texts

_PARAMETER = re.compile(r":([a-z_]+)")
# Every integer is a bigint, as on our own connections.
_TYPES: Mapping[type, str] = {bool: "boolean", int: "bigint", str: "text", bytes: "bytea"}


class AsyncpgDriver:
    """A connection of asyncpg, or of its pool."""

    def __init__(self, connection: Any) -> None:
        if connection.is_closed():
            raise InvalidArgument("connection", "is closed")
        if not connection.is_in_transaction():
            raise InvalidArgument(
                "connection",
                "has no open transaction: use it inside `async with connection.transaction():`",
            )
        self._given = connection
        # A pool lends the same connection each time inside another object.
        self.connection = getattr(connection, "_con", connection)
        self._asyncpg: Any = sys.modules["asyncpg"]

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """The errors of asyncpg."""
        return (self._asyncpg.PostgresError, self._asyncpg.InterfaceError)

    @property
    def search_path(self) -> str | None:
        """The search path, if the server reports it."""
        return getattr(self._given.get_settings(), "search_path", None)

    def prepare(self) -> None:
        """Do nothing, because asyncpg knows how to send arrays."""

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

    def translate(self, error: Any, address: Address) -> StoreError:
        """Return the DueQueue error for what psycopg would have raised."""
        code = getattr(error, "sqlstate", None)
        kind = psycopg.InterfaceError if code is None else _error_with(code)
        return translate(kind(str(error)), address)

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


class AsyncDriver(Protocol):
    """A caller's connection."""

    @property
    def connection(self) -> object:
        """The object that lives as long as the connection to the server."""

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """The errors of the driver."""

    @property
    def search_path(self) -> str | None:
        """The search path, if the server reports it."""

    def prepare(self) -> None:
        """Make the connection ready for its first command of ours."""

    async def perform(self, command: Any) -> object:
        """Carry out one command; see `session.perform`."""

    def translate(self, error: Any, address: Address) -> StoreError:
        """Return the DueQueue error for an error of the driver."""


class PsycopgDriver:
    """An awaiting connection of psycopg."""

    errors: tuple[type[Exception], ...] = (psycopg.Error,)

    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        refuse_autocommit(connection)
        self.connection = connection

    @property
    def search_path(self) -> str | None:
        """The search path, if the server reports it."""
        return search_path_of(self.connection)

    def prepare(self) -> None:
        """Teach the connection to send our arrays."""
        register_arrays(self.connection)

    async def perform(self, command: Any) -> object:
        """Carry out one command."""
        return await perform(self.connection, None, None, command)

    def translate(self, error: Any, address: Address) -> StoreError:
        """Return the DueQueue error for an error of psycopg."""
        return translate(error, address)
