"""PostgreSQL for whole batches, which are written with COPY and read in exported snapshots.

Rows of a COPY and arrays consist of values, each preceded by its length. Arrow joins those pieces
for all rows at once, so that no Python code runs per row.
"""

from array import array
from sys import byteorder
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.compute as pc
from psycopg import sql
from psycopg.rows import TupleRow

from duequeue.bulk.port import Snapshots
from duequeue.bulk.postgres_snapshots import PostgresSnapshots
from duequeue.bulk.sql import Load, QueryBatch, SqlBulk, add_bulk_queries, open_bulk
from duequeue.port.store import Session, Steps
from duequeue.stores.sql.commands import Query
from duequeue.stores.sql.postgres.adapters import BinaryArray, packed
from duequeue.stores.sql.postgres.backend import PostgresBackend
from duequeue.stores.sql.postgres.session import PostgresSession, perform
from duequeue.stores.sql.postgres.settings import PostgresSettings

_HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_TRAILER = b"\xff\xff"
_NULL = -1

add_bulk_queries("postgres")


def copy_in(connection: psycopg.Connection, table: str, rows: pa.RecordBatch) -> bool:
    """Append a batch; append nothing, and return False, if one of its keys is there already."""
    names = sql.SQL(", ").join(map(sql.Identifier, rows.schema.names))
    command = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT binary)")
    try:
        with (
            connection.transaction(),
            connection.cursor() as cursor,
            cursor.copy(command.format(sql.Identifier(table), names)) as copy,
        ):
            copy.write(_HEADER)
            copy.write(encoded(rows))
            copy.write(_TRAILER)
    except psycopg.errors.UniqueViolation:
        return False
    return True


def encoded(rows: pa.RecordBatch) -> memoryview:
    """Return the rows of a COPY, without its header and trailer."""
    pieces = [pa.scalar(rows.num_columns.to_bytes(2, "big"))]
    for column in rows.columns:
        pieces += _values(column)
    return _joined(pieces)


def batch_arrays(rows: pa.RecordBatch) -> dict[str, BinaryArray]:
    """Turn a batch into one array per column."""
    return {
        name: packed(name, rows.num_rows, _joined(_values(column)), nulls=column.null_count > 0)
        for name, column in zip(rows.schema.names, rows.columns, strict=True)
    }


def _joined(pieces: list[pa.Array | pa.Scalar]) -> memoryview:
    return memoryview(pc.binary_join_element_wise(*pieces, b"").buffers()[2])


def _values(column: pa.Array) -> list[pa.Array | pa.Scalar]:
    """Return the lengths and the bytes of a column's values."""
    if pa.types.is_boolean(column.type):
        return [_length(1), _swapped(column.cast(pa.int8()))]
    if pa.types.is_integer(column.type):
        return [_length(column.type.bit_width // 8), _swapped(column)]
    data = column.cast(pa.binary())
    lengths = pc.binary_length(data).fill_null(_NULL)
    return [_swapped(lengths), data.fill_null(b"")]


def _length(size: int) -> pa.Scalar:
    return pa.scalar(size.to_bytes(4, "big"))


def _swapped(numbers: pa.Array) -> pa.Array:
    """Return the bytes of each number, in network order."""
    width = numbers.type.bit_width // 8
    start = numbers.offset * width
    swapped = array({1: "b", 4: "i", 8: "q"}[width])
    swapped.frombytes(memoryview(numbers.buffers()[1])[start : start + len(numbers) * width])
    if byteorder == "little":
        swapped.byteswap()
    fixed = pa.binary(width)
    return pa.Array.from_buffers(fixed, len(numbers), [None, pa.py_buffer(swapped)]).cast(
        pa.binary()
    )


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
    """One database of one server; see `bulk.port.BulkBackend`."""

    def __init__(self, url: str) -> None:
        self._settings = PostgresSettings.from_url(url)

    @property
    def is_pooled(self) -> bool:
        """Return whether the URL has `pooler=transaction`."""
        return self._settings.pooled_by_transaction

    def bulk_session(self) -> Session:
        """Use a pool of connections."""
        return BulkPostgresSession(self._settings)

    def open_bulk(self, kind: str, *, migrate: bool, history: bool) -> Steps[SqlBulk]:
        """Open the bulk store of one kind."""
        return open_bulk(PostgresBackend.dialect, kind, migrate=migrate, history=history)

    def snapshots(self, kind_id: int) -> Snapshots:
        """Export snapshots."""
        return PostgresSnapshots(self._settings, kind_id)
