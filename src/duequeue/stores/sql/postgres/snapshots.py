"""One picture of the table for many readers: an exported snapshot, kept while they read."""

import threading
from collections.abc import Generator
from contextlib import ExitStack, closing, suppress
from functools import partial
from time import monotonic

import psycopg
from psycopg import sql

from duequeue.bulk import MessageRow, SnapshotPart, default_parts
from duequeue.stores.sql.parts import cut
from duequeue.stores.sql.postgres.chunks import chunks
from duequeue.stores.sql.postgres.session import translated
from duequeue.stores.sql.postgres.settings import Settings
from duequeue.stores.sql.postgres.statements import queries

_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_LISTEN = "LISTEN duequeue_snapshot"
LAST_PAGE = 2**32 - 1
_TELL = "SELECT pg_notify('duequeue_snapshot', %s)"


class PostgresSnapshots:
    """Reads one kind of message in parts; see `bulk.Snapshots`."""

    def __init__(self, settings: Settings, kind_id: int) -> None:
        self._settings = settings
        self._kind_id = kind_id

    def plan(self, parts: int | None, seconds: float) -> list[SnapshotPart]:
        """Export a snapshot and cut the table by its pages.

        Not behind a pooler: nobody would hear there that all is read, and a snapshot that is kept
        keeps the dead rows of the whole database. One part shows one moment without it.
        """
        if self._settings.pooled_by_transaction:
            with translated(self._settings.address), closing(self._connect()) as connection:
                ((first, last),) = connection.execute(queries()["measure_messages"]).fetchall()
            return cut(first, last, LAST_PAGE, parts or 1, None)
        with translated(self._settings.address), ExitStack() as opened:
            listening = opened.enter_context(closing(self._connect()))
            listening.execute(_LISTEN)
            holding = opened.enter_context(closing(self._connect()))
            holding.execute(_BEGIN)
            ((first, last),) = holding.execute(queries()["measure_messages"]).fetchall()
            ((name,),) = holding.execute("SELECT pg_export_snapshot()").fetchall()
            planned = cut(first, last, LAST_PAGE, parts or default_parts(), name)
            keep = partial(_keep, opened.pop_all(), listening, planned, seconds)
            threading.Thread(target=keep, name="duequeue-snapshot", daemon=True).start()
        return planned

    def read(
        self, part: SnapshotPart, page: int, *, with_payload: bool
    ) -> Generator[list[MessageRow], None, None]:
        """Read a range of pages in the snapshot."""
        of = {
            "kind_id": self._kind_id,
            "with_payload": with_payload,
            "first": part.first,
            "last": part.last,
        }
        with translated(self._settings.address), closing(self._connect()) as connection:
            connection.execute(_BEGIN)
            if part.snapshot is not None:
                _enter(connection, part.snapshot)
            # As the server sends them: its cursors would put each page aside first.
            yield from chunks(connection, queries()["read_messages"], of, page)
            connection.execute("COMMIT")
            if part.snapshot is not None:
                connection.execute(_TELL, [f"{part.snapshot} {part.number}"])

    def _connect(self) -> psycopg.Connection:
        return psycopg.connect(self._settings.conninfo, **self._settings.connection_arguments)


def _enter(connection: psycopg.Connection, snapshot: str) -> None:
    """See what the others see; or the present, when the snapshot has been let go.

    Spark plans a DataFrame once, however often it is used, and nothing tells a later use from the
    first.
    """
    try:
        connection.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(snapshot))
    except (psycopg.errors.InvalidParameterValue, psycopg.errors.UndefinedObject):
        connection.execute("ROLLBACK")
        connection.execute(_BEGIN)


def _keep(
    opened: ExitStack, listening: psycopg.Connection, parts: list[SnapshotPart], seconds: float
) -> None:
    """Leave the connections open until every part was read, or for so many seconds."""
    ends_at = monotonic() + seconds
    unread = {f"{part.snapshot} {part.number}" for part in parts}
    with opened, suppress(psycopg.Error):  # a server that is gone has let the snapshot go, too
        while unread and (left := ends_at - monotonic()) > 0:
            for told in listening.notifies(timeout=left, stop_after=1):
                unread.discard(told.payload)
