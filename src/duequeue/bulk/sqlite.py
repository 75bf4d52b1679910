"""SQLite for whole batches, with one writer and a read transaction for each part of a snapshot."""

import json
import sqlite3
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from duequeue.bulk.port import MessageColumns, SnapshotPart, SnapshotQuery, Snapshots
from duequeue.bulk.sql import (
    CHUNK_ROWS,
    SMALL_CHUNK_ROWS,
    Load,
    QueryBatch,
    SqlBulk,
    add_bulk_queries,
    cut,
    measured,
    open_bulk,
    paged,
)
from duequeue.errors import InvalidArgument
from duequeue.port.store import Session, Steps
from duequeue.stores.sql.commands import QueryEach, Row
from duequeue.stores.sql.sqlite.backend import SqliteBackend
from duequeue.stores.sql.sqlite.errors import translate
from duequeue.stores.sql.sqlite.session import QUERIES, SqliteSession
from duequeue.stores.sql.sqlite.settings import SqliteSettings

LAST_ID = 2**63 - 1

add_bulk_queries("sqlite")


class BulkSqliteSession(SqliteSession):
    """A session that can load batches too."""

    def _performer(self, connection: sqlite3.Connection) -> Callable[[Any], object]:
        ordinary = super()._performer(connection)

        def perform(command: Any) -> object:
            match command:
                case Load(table, rows):
                    return _load(connection, table, rows)
                case QueryBatch(name, parameters, rows):
                    return ordinary(QueryEach(name, parameters, rows.schema.names, _tuples(rows)))
                case _:
                    return ordinary(command)

        return perform


class SqliteSnapshots:
    """Reads one kind of message in parts; see `bulk.port.Snapshots`.

    A read transaction cannot be shared, so each part shows a moment of its own. By default, there
    is one part.
    """

    def __init__(self, path: str, kind_id: int) -> None:
        self._path = path
        self._kind_id = kind_id

    def measure(self) -> Steps[range]:
        """Look for the first and the last id."""
        return measured()

    def plan(self, table: range, parts: int | None, seconds: float) -> list[SnapshotPart]:  # noqa: ARG002 - nothing is kept
        """Cut the table by id."""
        return cut(table, LAST_ID, parts or 1)

    def read(
        self, part: SnapshotPart, page: int, query: SnapshotQuery
    ) -> Generator[MessageColumns, None, None]:
        """Read a range of ids in one statement, which is one read transaction."""
        keys = query.conditions.keys
        of = {
            **query.conditions._asdict(),
            "keys": json.dumps(keys),
            "kind_id": self._kind_id,
            "with_payload": query.with_payload,
            "first": part.first,
            "last": part.last,
        }
        with self._connected() as connection:
            name = "read_messages" if keys is None else "select_messages"
            cursor = connection.execute(QUERIES[name], of)
            size = min(page, CHUNK_ROWS if query.with_payload else SMALL_CHUNK_ROWS)
            chunks = iter(partial(cursor.fetchmany, size), [])
            yield from paged(chunks, page, with_payload=query.with_payload)

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        uri = f"{Path(self._path).absolute().as_uri()}?mode=ro"
        try:
            with closing(sqlite3.connect(uri, uri=True)) as connection:
                yield connection
        except sqlite3.Error as error:
            raise translate(error, self._path) from error


class BulkSqliteBackend:
    """One file; see `bulk.port.BulkBackend`."""

    is_pooled = False

    def __init__(self, url: str) -> None:
        self._path, self._synchronous, self._mode = SqliteSettings.from_url(url)
        if not Path(self._path).is_absolute():
            raise InvalidArgument(
                "url",
                "must name an absolute path, such as sqlite:////var/lib/app.db, because "
                "other processes work in other folders",
            )

    def bulk_session(self) -> Session:
        """Use one connection to write and one to read."""
        return BulkSqliteSession(self._path, self._synchronous, self._mode)

    def open_bulk(self, kind: str, *, migrate: bool, history: bool) -> Steps[SqlBulk]:
        """Open the bulk store of one kind."""
        return open_bulk(SqliteBackend.dialect, kind, migrate=migrate, history=history)

    def snapshots(self, kind_id: int) -> Snapshots:
        """Read the file."""
        return SqliteSnapshots(self._path, kind_id)


def _load(connection: sqlite3.Connection, table: str, rows: pa.RecordBatch) -> bool:
    """Insert a batch; insert nothing, and return False, if one of its keys is there already.

    Any other error may have ended the transaction, and the savepoint with it.
    """
    names = rows.schema.names
    insert = (
        f"INSERT INTO {table} ({', '.join(names)}) "  # noqa: S608 - the names are ours
        f"VALUES ({', '.join('?' * len(names))})"
    )
    connection.execute("SAVEPOINT loading")
    try:
        connection.executemany(insert, _tuples(rows))
    except sqlite3.IntegrityError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_CONSTRAINT_UNIQUE:
            raise
        connection.execute("ROLLBACK TO loading")
        loaded = False
    else:
        loaded = True
    connection.execute("RELEASE loading")
    return loaded


def _tuples(rows: pa.RecordBatch) -> list[Row]:
    return list(zip(*(column.to_pylist() for column in rows.columns), strict=True))
