"""An exported snapshot, so that many readers see the table at the same moment."""

import logging
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from time import sleep

import psycopg
from psycopg import generators, sql
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus, Format

from duequeue.bulk.port import MessageColumns, SnapshotPart, SnapshotQuery, default_parts
from duequeue.bulk.postgres_snapshot_holder import BEGIN, CAN_DETACH, hold, seen_reading
from duequeue.bulk.sql import CHUNK_ROWS, SMALL_CHUNK_ROWS, cut, measured, paged
from duequeue.errors import StoreError
from duequeue.port.store import Steps
from duequeue.retry_policy import RetryPolicy
from duequeue.stores.sql.commands import Parameters, Row
from duequeue.stores.sql.postgres.errors import is_transient, translated
from duequeue.stores.sql.postgres.settings import PostgresSettings
from duequeue.stores.sql.postgres.statements import queries

_ROWS = {ExecStatus.TUPLES_OK, ExecStatus.TUPLES_CHUNK, ExecStatus.SINGLE_TUPLE}

LAST_PAGE = 2**32 - 1
# By default no part is smaller than this, in pages of the table, because a second part costs a
# process, more connections and a snapshot that is kept.
PART_PAGES = 4096
# Whether any payload is stored outside the table, as PostgreSQL does above about two kilobytes.
_HAS_LARGE_PAYLOADS = """
    SELECT coalesce(pg_relation_size(reltoastrelid) > 0, true) FROM pg_class
    WHERE oid = CAST('duequeue_message' AS regclass)
"""
# A table may have been filled since its statistics were made, so the planner must not trust them.
USE_AN_INDEX = "SET LOCAL enable_seqscan = off; SET LOCAL enable_tidscan = off"
_SERVER_BEGAN = "SELECT CAST(pg_postmaster_start_time() AS text)"
_LOST = (
    "the snapshot of this read is no longer kept, so its partitions would show different moments, "
    "with messages repeated or missing. Either the server was restarted, or nobody read for longer "
    "than snapshotTimeout allows, or this DataFrame was read before"
)
_REMEDY = (
    "load the DataFrame again, or set numPartitions to 1, which needs no snapshot, or set "
    "failOnSnapshotLoss to false"
)

_NO_SNAPSHOT = (
    "no snapshot can be kept behind a pooler or on Windows, so each of the %d partitions of this "
    "read shows its own moment, and a message that changes meanwhile may be in two of them or in "
    "none: set numPartitions to 1 to read one moment"
)

logger = logging.getLogger("duequeue.spark")


def chunks(
    connection: psycopg.Connection, query: bytes, parameters: Parameters, size: int
) -> Iterator[list[Row]]:
    """Run a query and yield its rows, `size` at a time.

    Until the last of them, the connection can do nothing else but be closed.
    """
    statement = psycopg.ClientCursor(connection).mogrify(query, parameters)
    pgconn, transformer = connection.pgconn, Transformer(connection)
    pgconn.send_query_params(statement.encode(), None, result_format=Format.BINARY)
    if psycopg.capabilities.has_stream_chunked():
        pgconn.set_chunked_rows_mode(size)
    else:
        pgconn.set_single_row_mode()
    connection.wait(generators.send(pgconn))
    rows: list[Row] = []
    first = True
    while (result := connection.wait(generators.fetch(pgconn))) is not None:
        if result.status not in _ROWS:
            raise error_from_result(result)
        transformer.set_pgresult(result, set_loaders=first)
        first = False
        rows += transformer.load_rows(0, result.ntuples, tuple)
        result.clear()
        if len(rows) >= size:
            yield rows
            rows = []
    if rows:
        yield rows


class PostgresSnapshots:
    """Reads one kind of message in parts; see `bulk.port.Snapshots`."""

    def __init__(self, settings: PostgresSettings, kind_id: int) -> None:
        self._settings = settings
        self._kind_id = kind_id

    def measure(self) -> Steps[range]:
        """Count the pages of the table."""
        return measured()

    def plan(self, table: range, parts: int | None, seconds: float) -> list[SnapshotPart]:
        """Export a snapshot and cut the table by its pages.

        A single part shows one moment by itself and needs no snapshot. So there is one part if
        this driver already keeps as many snapshots as it may. By default there is also one part
        behind a pooler, where no reader could hold a lock, and where no process can stay behind to
        keep the snapshot.
        """
        if self._settings.pooled_by_transaction or not CAN_DETACH:
            return _warned(cut(table, LAST_PAGE, parts or 1))
        planned = cut(table, LAST_PAGE, parts or min(default_parts(), len(table) // PART_PAGES))
        if len(planned) == 1:
            return planned
        snapshot = hold(self._settings, len(planned), seconds)
        if snapshot is None:
            return cut(table, LAST_PAGE, 1)
        return [part._replace(snapshot=snapshot) for part in planned]

    def read(
        self, part: SnapshotPart, page: int, query: SnapshotQuery
    ) -> Generator[MessageColumns, None, None]:
        """Read a range of pages in the snapshot, or look the messages up in an index."""
        narrow = query.conditions.are_narrow
        of = {
            **query.conditions._asdict(),
            "kind_id": self._kind_id,
            "with_payload": query.with_payload,
            "first": part.first,
            "last": part.last,
        }
        with translated(self._settings.address), self._reading(part) as connection:
            _enter(connection, part.snapshot, fail_on_loss=query.fail_on_loss)
            if narrow:
                connection.execute(USE_AN_INDEX)
            ((large,),) = connection.execute(_HAS_LARGE_PAYLOADS).fetchall()
            size = min(page, CHUNK_ROWS if large and query.with_payload else SMALL_CHUNK_ROWS)
            # Rows are read as the server sends them, since its cursors would store each page first.
            statement = queries()["select_messages" if narrow else "read_messages"]
            found = chunks(connection, statement, of, size)
            yield from paged(found, page, with_payload=query.with_payload)
            connection.execute("COMMIT")

    @contextmanager
    def _reading(self, part: SnapshotPart) -> Iterator[psycopg.Connection]:
        connection = self._connect_patiently()
        if part.snapshot is None:
            with closing(connection):
                yield connection
        else:
            with seen_reading(connection, part.snapshot, part.number):
                yield connection

    def _connect_patiently(self) -> psycopg.Connection:
        """Connect, and wait for a server that restarts or has no free connection at this moment."""
        for pause in RetryPolicy().pauses():
            try:
                return self._connect()
            except psycopg.Error as error:
                if not is_transient(error):
                    raise
            sleep(pause)
        return self._connect()

    def _connect(self) -> psycopg.Connection:
        return psycopg.connect(self._settings.conninfo, **self._settings.connection_arguments)


def _warned(parts: list[SnapshotPart]) -> list[SnapshotPart]:
    if len(parts) > 1:
        logger.warning(_NO_SNAPSHOT, len(parts))
    return parts


def _enter(connection: psycopg.Connection, snapshot: str | None, *, fail_on_loss: bool) -> None:
    """Begin to read in the shared snapshot or, if it is lost and that is allowed, in the present.

    Spark plans a DataFrame once, however often it is used, and a later use looks like the first.
    """
    if snapshot is not None:
        if _can_enter(connection, snapshot):
            return
        if fail_on_loss:
            raise StoreError(f"{_LOST}: {_REMEDY}")
        logger.warning("%s: this partition shows the present", _LOST)
    connection.execute(BEGIN)


def _can_enter(connection: psycopg.Connection, snapshot: str) -> bool:
    """Enter the snapshot, unless it is gone or the server was started again since.

    A server that was started again gives the same names to other snapshots.
    """
    name, _, server_began = snapshot.partition(" ")
    if connection.execute(_SERVER_BEGAN).fetchall() != [(server_began,)]:
        return False
    connection.execute(BEGIN)
    try:
        connection.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(name))
    except (psycopg.errors.InvalidParameterValue, psycopg.errors.UndefinedObject):
        connection.execute("ROLLBACK")
        return False
    return True
