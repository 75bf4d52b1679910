# Made from given_async.py: change that file, and run `make made`.
"""The blocking connections of psycopg that `within` takes."""

from typing import Any

import psycopg

from duequeue.drive.steps import drive
from duequeue.errors import StoreError
from duequeue.stores.sql.postgres.accepted import accepted
from duequeue.stores.sql.postgres.adapters import register_arrays
from duequeue.stores.sql.postgres.errors import translate
from duequeue.stores.sql.postgres.identity import Identity, identify, recall, remember
from duequeue.stores.sql.postgres.session import perform
from duequeue.stores.sql.postgres.settings import Address


class GivenPostgres:
    """A caller's connection; see `connections.borrowed`."""

    errors: tuple[type[Exception], ...] = (psycopg.Error,)

    def __init__(self, given: object, address: Address) -> None:
        self._connection = accepted(given)
        self._address = address

    @property
    def closed(self) -> bool:
        """Whether it is closed."""
        return self._connection.closed

    def perform(self, command: Any) -> object:
        """Carry out one command."""
        return perform(self._connection, None, None, command)

    def recall(self) -> Identity | None:
        """Return what the connection leads to, if that is known already."""
        return recall(self._connection, self._search_path)

    def look(self) -> Identity:
        """Ask the connection what it leads to, and keep that as long as the connection exists."""
        register_arrays(self._connection)
        identity = drive(identify(), self.perform)
        return remember(self._connection, identity, self._search_path)

    def translate(self, error: Any) -> StoreError:
        """Return the DueQueue error for an error of psycopg."""
        return translate(error, self._address)

    @property
    def _search_path(self) -> str | None:
        """The search path, which servers report since PostgreSQL 18."""
        path = self._connection.pgconn.parameter_status(b"search_path")
        return None if path is None else path.decode()
