"""An exported snapshot, so that many readers see the table at the same moment."""

from collections.abc import Generator
from contextlib import closing

import psycopg
from psycopg import sql

from duequeue.port.bulk import MessageColumns, SnapshotPart, default_parts
from duequeue.stores.sql.bulk.snapshots import CHUNK_ROWS, SMALL_CHUNK_ROWS, cut, paged
from duequeue.stores.sql.postgres.bulk.chunks import chunks
from duequeue.stores.sql.postgres.bulk.detached import CAN_DETACH
from duequeue.stores.sql.postgres.bulk.snapshot_holder import BEGIN, hold
from duequeue.stores.sql.postgres.errors import translated
from duequeue.stores.sql.postgres.settings import PostgresSettings
from duequeue.stores.sql.postgres.statements import queries

LAST_PAGE = 2**32 - 1
# Whether any payload is stored outside the table, as PostgreSQL does above about two kilobytes.
_HAS_LARGE_PAYLOADS = """
    SELECT coalesce(pg_relation_size(reltoastrelid) > 0, true) FROM pg_class
    WHERE oid = CAST('duequeue_message' AS regclass)
"""
_TELL = "SELECT pg_notify('duequeue_snapshot', %s)"


class PostgresSnapshots:
    """Reads one kind of message in parts; see `port.bulk.Snapshots`."""

    def __init__(self, settings: PostgresSettings, kind_id: int) -> None:
        self._settings = settings
        self._kind_id = kind_id

    def plan(self, parts: int | None, seconds: float) -> list[SnapshotPart]:
        """Export a snapshot and cut the table by its pages.

        Behind a pooler there is no snapshot, because nobody would hear that all parts are read,
        and a snapshot that is kept too long keeps the dead rows of the whole database. Nor is
        there one where no process can stay behind to keep it. Then there is one part, which shows
        one moment by itself.
        """
        with translated(self._settings.address), closing(self._connect()) as connection:
            ((first, last),) = connection.execute(queries()["measure_messages"]).fetchall()
        if self._settings.pooled_by_transaction or not CAN_DETACH:
            return cut(first, last, LAST_PAGE, parts or 1, None)
        planned = cut(first, last, LAST_PAGE, parts or default_parts(), None)
        snapshot = hold(self._settings, len(planned), seconds)
        return [part._replace(snapshot=snapshot) for part in planned]

    def read(
        self, part: SnapshotPart, page: int, *, with_payload: bool
    ) -> Generator[MessageColumns, None, None]:
        """Read a range of pages in the snapshot."""
        of = {
            "kind_id": self._kind_id,
            "with_payload": with_payload,
            "first": part.first,
            "last": part.last,
        }
        with translated(self._settings.address), closing(self._connect()) as connection:
            connection.execute(BEGIN)
            if part.snapshot is not None:
                _enter(connection, part.snapshot)
            ((large,),) = connection.execute(_HAS_LARGE_PAYLOADS).fetchall()
            size = min(page, CHUNK_ROWS if large and with_payload else SMALL_CHUNK_ROWS)
            # Rows are read as the server sends them, since its cursors would store each page first.
            found = chunks(connection, queries()["read_messages"], of, size)
            yield from paged(found, page, with_payload=with_payload)
            connection.execute("COMMIT")
            if part.snapshot is not None:
                connection.execute(_TELL, [f"{part.snapshot} {part.number}"])

    def _connect(self) -> psycopg.Connection:
        return psycopg.connect(self._settings.conninfo, **self._settings.connection_arguments)


def _enter(connection: psycopg.Connection, snapshot: str) -> None:
    """Read in the shared snapshot, or in the present if the snapshot is no longer kept.

    Spark plans a DataFrame once, however often it is used, and a later use looks like the first.
    """
    try:
        connection.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(snapshot))
    except (psycopg.errors.InvalidParameterValue, psycopg.errors.UndefinedObject):
        connection.execute("ROLLBACK")
        connection.execute(BEGIN)
