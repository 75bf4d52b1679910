"""MariaDB and MySQL for whole batches, which are written with long INSERT statements."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from duequeue.bulk.mariadb_snapshots import MariadbSnapshots
from duequeue.bulk.port import Snapshots
from duequeue.bulk.sql import Load, QueryBatch, SqlBulk, add_bulk_queries, open_bulk
from duequeue.port.store import Session, Steps
from duequeue.stores.mailbox import Note
from duequeue.stores.sql.commands import BEGIN, Execute, Query, QueryEach, Row
from duequeue.stores.sql.mariadb.alerts import NO_SUCH_CONNECTION, NOT_ITS_OWNER, lock_names
from duequeue.stores.sql.mariadb.backend import MariadbBackend
from duequeue.stores.sql.mariadb.conversation import Conversation, Packets, command_name
from duequeue.stores.sql.mariadb.errors import DRIVER_ERRORS, number_of
from duequeue.stores.sql.mariadb.partitions import ignoring
from duequeue.stores.sql.mariadb.session import MariadbSession
from duequeue.stores.sql.mariadb.settings import MariadbSettings
from duequeue.stores.sql.mariadb.statements import MOST_AT_ONCE, literal

# A statement inserts or merges this many rows. While a merge runs, no other process can draw an id
# on a server with the default setting.
ROWS_AT_ONCE = 1000
DUPLICATE_KEY = 1062
# A byte takes at most two characters, and the numbers of a row take fewer than this together.
CHARACTERS_OF_NUMBERS = 250
SAVEPOINT = "SAVEPOINT loading"
# The rows of the stage are numbered, because the server wants every table to have a primary key.
NUMBERED = {"duequeue_stage": "position"}

_SLICE = ("slice", "last_due_at", "longest_payload", "ids")

add_bulk_queries("mariadb")


def merge_staged(
    merge: str, *, kind_id: int, writer: int, batch: int, parts: str, now: int
) -> Steps[list[Row]]:
    """Merge the given parts, one range after the other; return the numbers of each range."""
    wanted, stage = set(json.loads(parts)), {"writer": writer, "batch": batch}
    staged: list[Row] = yield Query("list_staged", stage)
    if len(wanted) > 1:
        yield Execute("discard_doubles", {**stage, "parts": parts})
    merged = list[Row]()
    for part, rows in staged:
        for first in range(0, rows if part in wanted else 0, ROWS_AT_ONCE):
            place = {**stage, "part": part, "first": first, "last": first + ROWS_AT_ONCE}
            merged += yield Query(merge, {**place, "kind_id": kind_id, "now": now})
    return merged


def gather_stream_batch(
    *, kind_id: int, consumer: str, sequence: int, until: int, now: int, slice_size: int, **due: int
) -> Steps[list[Row]]:
    """Lock what is due, and store its ids in slices; return the end and the length of each."""
    found: list[Row] = yield Query("find_stream_batch", {"kind_id": kind_id, "now": now, **due})
    slices = [found[first : first + slice_size] for first in range(0, len(found), slice_size)]
    batch = {"kind_id": kind_id, "consumer": consumer, "sequence": sequence}
    each = [(number, *_described(rows)) for number, rows in enumerate(slices)]
    if each:
        yield QueryEach("add_stream_slices", {**batch, "now": now, "until": until}, _SLICE, each)
    return [(rows[-1][0], rows[-1][1], len(rows)) for rows in slices]


def extend_stream_batch(**lease: Any) -> Steps[int]:
    """Extend the leases that are still held, and count them, even if their end stays the same."""
    held: list[Row] = yield Query("extend_batch_leases", lease)
    return len(held)


def slice_lengths(**page: Any) -> Steps[list[Row]]:
    """Return the lengths as a JSON array."""
    rows: list[Row] = yield Query("list_slice_lengths", page)
    return [(json.dumps([length for (length,) in rows]),)]


def note_handled(*, handler_ms: str, **slice_of: Any) -> Steps[int]:
    """Append the times as pairs of an id and a number of milliseconds."""
    pairs = [[int(number), millis] for number, millis in json.loads(handler_ms).items()]
    times = json.dumps(pairs)[1:-1]
    noted: int = yield Execute("add_handler_times", {**slice_of, "times": times})
    return noted


def notify_waiters(*, note: str) -> Steps[list[Row]]:
    """End the sleep of everybody who waits for messages of a kind."""
    ((database,),) = yield Query("name_database")
    names = lock_names(database, Note.parse(note).kind)
    (holders,) = yield QueryEach("find_waiting", {}, ("name",), [(name,) for name in names])
    for number in filter(None, holders):
        with ignoring(NO_SUCH_CONNECTION, NOT_ITS_OWNER):
            yield Execute("end_sleep", {"number": number})
    return []


def _described(rows: list[Row]) -> Row:
    """Return the last due time, the longest payload and the ids of a slice."""
    ids = json.dumps([number for _, number, _ in rows], separators=(",", ":"))
    return rows[-1][0], max(length for _, _, length in rows), ids


STEPS: dict[str, Callable[..., Steps[Any]]] = {
    "merge_staged": partial(merge_staged, "merge_staged_range"),
    "merge_staged_with_history": partial(merge_staged, "merge_staged_range_with_history"),
    "gather_stream_batch": gather_stream_batch,
    "extend_stream_batch": extend_stream_batch,
    "slice_lengths": slice_lengths,
    "note_handled": note_handled,
    "notify_waiters": notify_waiters,
}


class BulkConversation(Conversation):
    """A conversation that can load batches too."""

    def perform(self, command: Any) -> Packets[object]:
        """Carry out one command; see `Conversation.perform`."""
        if isinstance(command, Load):
            return (yield from self._load(command.table, command.rows))
        if isinstance(command, QueryBatch):
            return (yield from self._query_batch(command))
        if (name := command_name(command)) in STEPS:
            return (yield from self._perform_all(STEPS[name](**command.parameters)))
        return (yield from super().perform(command))

    def _load(self, table: str, rows: pa.RecordBatch) -> Packets[bool]:
        """Insert a batch; insert nothing, and return False, if one of its keys is there already."""
        if table in NUMBERED:
            numbers = pa.array(range(rows.num_rows), pa.int64())
            rows = rows.append_column(NUMBERED[table], numbers)
        yield from self.perform(BEGIN)
        try:
            yield from self._send([SAVEPOINT, *self._inserts(table, rows)])
        except DRIVER_ERRORS as error:
            if number_of(error) != DUPLICATE_KEY:
                raise
            yield from self._send([f"ROLLBACK TO {SAVEPOINT}"])
            return False
        return True

    def _query_batch(self, command: QueryBatch) -> Packets[list[Row]]:
        yield from self.perform(BEGIN)
        names, found = command.rows.schema.names, list[Row]()
        for rows in self._cut(command.rows, MOST_AT_ONCE):
            each = list(zip(*(column.to_pylist() for column in rows.columns), strict=True))
            query = QueryEach(command.name, command.parameters, names, each)
            found += yield from self._query_each(query)
        return found

    def _inserts(self, table: str, rows: pa.RecordBatch) -> Iterator[str]:
        names = ", ".join(f"`{name}`" for name in rows.schema.names)
        for some in self._cut(rows, ROWS_AT_ONCE):
            columns = [map(literal, column.to_pylist()) for column in some.columns]
            values = "), (".join(map(", ".join, zip(*columns, strict=True)))
            yield f"INSERT INTO {table} ({names}) VALUES ({values})"  # noqa: S608 - all of it is ours

    def _cut(self, rows: pa.RecordBatch, most: int) -> Iterator[pa.RecordBatch]:
        """Divide a batch so that each part fits into half a packet, unless it is a single row."""
        room = self._facts.most_bytes // 2
        first, size = 0, 0
        for number, characters in enumerate(_characters(rows)):
            if number > first and (number - first == most or size + characters > room):
                yield rows.slice(first, number - first)
                first, size = number, 0
            size += characters
        if rows.num_rows:
            yield rows.slice(first)


def _characters(rows: pa.RecordBatch) -> list[int]:
    """Return how long each row will be in a statement, at most."""
    total = pa.repeat(pa.scalar(CHARACTERS_OF_NUMBERS, pa.int64()), rows.num_rows)
    for column in rows.columns:
        if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
            lengths = pc.binary_length(column).cast(pa.int64()).fill_null(0)
            total = pc.add(total, pc.multiply(lengths, 2))
    found: list[int] = total.to_pylist()
    return found


class BulkMariadbSession(MariadbSession):
    """A session that can load batches too."""

    conversation = BulkConversation


class BulkMariadbBackend:
    """One database of one server or cluster; see `bulk.port.BulkBackend`."""

    is_pooled = False

    def __init__(self, url: str) -> None:
        self._settings = MariadbSettings.from_url(url)

    def bulk_session(self) -> Session:
        """Use a pool of connections."""
        return BulkMariadbSession(self._settings)

    def open_bulk(self, kind: str, *, migrate: bool, history: bool) -> Steps[SqlBulk]:
        """Open the bulk store of one kind."""
        return open_bulk(MariadbBackend.dialect, kind, migrate=migrate, history=history)

    def snapshots(self, kind_id: int) -> Snapshots:
        """Read each part in a transaction of its own."""
        return MariadbSnapshots(self._settings, kind_id)
