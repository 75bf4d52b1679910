"""PostgreSQL for whole batches, which are written with COPY and read in exported snapshots."""

from typing import Any

import psycopg
from psycopg.rows import TupleRow

from duequeue.port.bulk import Snapshots
from duequeue.port.store import Session, Steps
from duequeue.stores.sql.bulk import store as bulk
from duequeue.stores.sql.bulk.commands import Load, QueryBatch
from duequeue.stores.sql.commands import Query
from duequeue.stores.sql.postgres.backend import PostgresBackend
from duequeue.stores.sql.postgres.bulk.copying import batch_arrays, copy_in
from duequeue.stores.sql.postgres.bulk.snapshots import PostgresSnapshots
from duequeue.stores.sql.postgres.session import PostgresSession, perform
from duequeue.stores.sql.postgres.settings import PostgresSettings


class BulkPostgresSession(PostgresSession):
    """A session that can load batches too."""

    def __init__(self, settings: PostgresSettings) -> None:
        super().__init__(settings)
        self._perform = perform_bulk


def perform_bulk(
    connection: psycopg.Connection[Any],
    kept: psycopg.Cursor[TupleRow] | None,
    ends_at: float | None,
    command: Any,
) -> object:
    """Carry out one command; see `perform`."""
    match command:
        case Load(table, rows):
            return copy_in(connection, table, rows)
        case QueryBatch(name, parameters, rows):
            query = Query(name, {**parameters, **batch_arrays(rows)})
            return perform(connection, kept, ends_at, query)
        case _:
            return perform(connection, kept, ends_at, command)


class BulkPostgresBackend:
    """One database of one server; see `port.bulk.BulkBackend`."""

    def __init__(self, url: str) -> None:
        self._settings = PostgresSettings.from_url(url)

    @property
    def is_pooled(self) -> bool:
        """Return whether the URL has `pooler=transaction`."""
        return self._settings.pooled_by_transaction

    def bulk_session(self) -> Session:
        """Use a pool of connections."""
        return BulkPostgresSession(self._settings)

    def open_bulk(self, kind: str, *, migrate: bool, history: bool) -> Steps[bulk.SqlBulk]:
        """Open the bulk store of one kind."""
        return bulk.open_bulk(PostgresBackend.dialect, kind, migrate=migrate, history=history)

    def snapshots(self, kind_id: int) -> Snapshots:
        """Export snapshots."""
        return PostgresSnapshots(self._settings, kind_id)
