"""The awaiting connections that `within` takes, each with its driver's way to run a command."""

from typing import Any, Protocol

import psycopg

from duequeue.errors import StoreError
from duequeue.stores.sql.postgres.adapters import register_arrays
from duequeue.stores.sql.postgres.address import Address
from duequeue.stores.sql.postgres.borrowed import refuse_autocommit, search_path_of
from duequeue.stores.sql.postgres.errors import translate
from duequeue.stores.sql.postgres.session_async import perform


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
