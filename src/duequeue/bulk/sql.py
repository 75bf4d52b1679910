"""Whole batches in an SQL database: the commands, what is offered, and how snapshots are cut."""

import json
from collections.abc import Generator, Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Any, NamedTuple

import pyarrow as pa

from duequeue.bulk.port import (
    PAGE_BYTES,
    PAYLOAD,
    STALE_AFTER,
    UNKNOWN,
    MessageColumns,
    MessageRow,
    OfferCounts,
    SnapshotPart,
    StageId,
    StreamCounts,
    Written,
    name_is_taken,
)
from duequeue.bulk.sql_streams import SWEEP_INTERVAL, SqlStreams
from duequeue.errors import StoreError
from duequeue.port.store import Steps
from duequeue.stores.sql.backend import find_kind
from duequeue.stores.sql.catalogue import add_queries
from duequeue.stores.sql.commands import BEGIN, Execute, Parameters, Query, QueryEach, Row
from duequeue.stores.sql.history_table import HistoryDays
from duequeue.stores.sql.settling import Settling
from duequeue.stores.sql.store import Kind, SqlStore
from duequeue.stores.sql.watermark import Watermark

# The number of a batch that does not belong to a stream; Spark's numbers begin with 0.
ALONE = -1
# Rows are fetched in chunks of this size before their size is known, so a page may overshoot by one
# chunk. Without payloads, larger chunks save about 10 % of the client's time.
CHUNK_ROWS = 64
SMALL_CHUNK_ROWS = 1000


class Load(NamedTuple):
    """Append a batch, whose columns are named as those of the table, atomically.

    The reply is False, and nothing was appended, if one of the keys was there already.
    """

    table: str
    rows: pa.RecordBatch


class QueryBatch(NamedTuple):
    """A `QueryEach` whose sets of parameters are the rows of a batch."""

    name: str
    parameters: Parameters
    rows: pa.RecordBatch


def add_bulk_queries(dialect: str) -> None:
    """Let the sessions of a dialect know the queries for whole batches."""
    add_queries(dialect, texts_of(dialect))


def texts_of(dialect: str) -> list[str]:
    """Return the files of SQL for whole batches, of which the dialect's own counts more."""
    folder = files(__package__)
    return [folder.joinpath(name).read_text("utf-8") for name in ("shared.sql", f"{dialect}.sql")]


def measured() -> Steps[range]:
    """Return the range of ids or pages that the table has."""
    rows: list[Row] = yield Query("measure_messages")
    return range(*rows[0])


def cut(table: range, end: int, parts: int) -> list[SnapshotPart]:
    """Cut a range into at most `parts` parts of similar length.

    The last part extends to `end`, because there may be more by the time it is read.
    """
    many = max(1, min(parts, len(table)))
    bounds = [*(table.start + len(table) * number // many for number in range(many)), end]
    return [
        SnapshotPart(number, bounds[number], bounds[number + 1], None) for number in range(many)
    ]


def paged(
    chunks: Iterable[list[MessageRow]], rows: int, *, with_payload: bool
) -> Generator[MessageColumns, None, None]:
    """Join chunks into pages of at most `rows` rows and about `PAGE_BYTES` of payloads.

    All chunks but the last have one length. Each chunk is turned into columns at once, while it is
    still in the processor's cache, which is faster than to convert a whole page.
    """
    page: list[list[Any]] = []
    size = 0
    for chunk in chunks:
        length = len(chunk)
        page = page or [[] for _ in chunk[0]]
        size += _join(page, chunk, with_payload=with_payload)
        chunk.clear()  # so that it does not take up memory while the next one is fetched
        if len(page[0]) + length > rows or size >= PAGE_BYTES:
            yield page
            page, size = [], 0
    if page:
        yield page


def _join(page: list[list[Any]], chunk: list[MessageRow], *, with_payload: bool) -> int:
    """Add a chunk to a page, and return the size of its payloads in bytes."""
    columns = list(zip(*chunk, strict=True))
    for column, more in zip(page, columns, strict=True):
        column.extend(more)
    return sum(map(len, columns[PAYLOAD])) if with_payload else 0


class SqlStage:
    """The staged and the offered batches of one kind; see `bulk.port.BulkStore`."""

    def __init__(self, kind_id: int, settling: Settling) -> None:
        self._kind = {"kind_id": kind_id}
        self._settling = settling
        self._look_first = True

    def ingest(
        self, rows: pa.RecordBatch, now: int, *, expect_new: bool
    ) -> Steps[tuple[OfferCounts, bool]]:
        """Append the batch; if one of its keys is taken, merge it instead."""
        yield from self._settling.prepare(now)
        yield BEGIN
        if expect_new and (yield Load("duequeue_message", self._as_messages(rows, now))):
            return OfferCounts(created=rows.num_rows), True
        keeps = self._settling.keeps_history
        name = "merge_messages_with_history" if keeps else "merge_messages"
        merge = {**self._kind, "look_first": self._look_first, "now": now}
        found = yield from self._settling.rows_of(QueryBatch(name, merge, rows), now)
        counts = _counts(found, rows.num_rows)
        # To compare with the stored messages first pays off if most are equal. The next batch will
        # probably be like this one.
        self._look_first = counts.ignored > rows.num_rows // 2
        return counts, False

    def take_write_place(self, most: int) -> Steps[bool]:
        """Take one of the queue's numbered places."""
        return bool((yield Query("take_write_place", {**self._kind, "most": most})))

    def stage(self, rows: pa.RecordBatch, stage: StageId, part: int) -> Steps[None]:
        """Append rows to the stage."""
        yield BEGIN
        own = {"writer": stage.writer, "batch": stage.batch, "part": part}
        yield Load("duequeue_stage", _with_constants(rows, own, pa.int64()))

    def discard(self, stage: StageId, parts: Sequence[int]) -> Steps[None]:
        """Delete parts from the stage."""
        if parts:
            each = [(part,) for part in parts]
            yield QueryEach("discard_staged", stage._asdict(), ("part",), each)

    def merge(
        self,
        app: str,
        stage: StageId,
        parts: Mapping[int, int],
        now: int,
        doubles: int = 0,
        written: Written = UNKNOWN,
    ) -> Steps[OfferCounts | None]:
        """Record the batch, which locks out any other try, check the stage, and merge it."""
        yield from self._settling.prepare(now)
        yield BEGIN
        if not (yield from self._open(app, stage.batch, now)):
            yield from self._check_repeated(app, stage.batch, written)
            yield Execute("empty_stage", stage._asdict())
            return None
        staged: list[Row] = yield Query("list_staged", stage._asdict())
        if {part: rows for part, rows in staged if part in parts} != parts:
            raise StoreError(
                f"batch {stage.batch} of {app!r} is no longer staged as it was written; the server "
                "must have crashed in between, so run the batch again"
            )
        merged = yield from self._merge(stage, parts, now)
        counts = merged.plus(OfferCounts(ignored=doubles))
        about = {"app": app, **counts._asdict(), **written._asdict()}
        yield Execute("add_to_commit", {**self._kind, **about})
        return counts

    def record(self, app: str, counts: OfferCounts, now: int) -> Steps[None]:
        """Store the counts as those of a commit, and delete those that nobody has asked for."""
        yield BEGIN
        stale = {**self._kind, "batch": ALONE, "before": now - STALE_AFTER}
        yield Execute("forget_stale_commits", stale)
        yield from self._open(app, ALONE, now)
        yield Execute("close_commit", {**self._kind, "app": app, **counts._asdict()})

    def take_record(self, app: str) -> Steps[OfferCounts | None]:
        """Read the commit and delete it."""
        yield BEGIN
        found = yield from self.stream_counts(app)
        if found is None:
            return None
        yield Execute("forget_commit", {**self._kind, "app": app})
        return found.offered

    def stream_counts(self, app: str) -> Steps[StreamCounts | None]:
        """Read the commit."""
        rows: list[Row] = yield Query("find_commit", {**self._kind, "app": app})
        return StreamCounts(rows[0][0], OfferCounts(*rows[0][1:])) if rows else None

    def _open(self, app: str, batch: int, now: int) -> Steps[bool]:
        commit = {**self._kind, "app": app, "batch": batch, "now": now}
        return bool((yield Execute("open_commit", commit)))

    def _check_repeated(self, app: str, batch: int, written: Written) -> Steps[None]:
        """Raise unless the batch is the last one, because only the last one is ever repeated."""
        ((last, *by),) = yield Query("last_commit", {**self._kind, "app": app})
        if last > batch:
            raise name_is_taken(app, f"batch {last}, and this is batch {batch}")
        if written.differs_from(Written(*by)):
            raise name_is_taken(app, f"another batch {batch}, with other rows")

    def _merge(self, stage: StageId, parts: Mapping[int, int], now: int) -> Steps[OfferCounts]:
        of = {**self._kind, **stage._asdict(), "parts": json.dumps(list(parts)), "now": now}
        keeps = self._settling.keeps_history
        name = "merge_staged_with_history" if keeps else "merge_staged"
        found = yield from self._settling.rows_of(Query(name, of), now)
        yield Execute("empty_stage", stage._asdict())
        return _counts(found, sum(parts.values()))

    def _as_messages(self, rows: pa.RecordBatch, now: int) -> pa.RecordBatch:
        """Return the rows with all columns of the table of messages."""
        messages = rows.drop_columns(["replace"]).append_column("asked_at", rows["due_at"])
        messages = _with_constants(messages, {"created_at": now}, pa.int64())
        return _with_constants(messages, self._kind, pa.int32())


def _counts(found: list[Row], total: int) -> OfferCounts:
    """Add up the created and updated messages; the others were ignored."""
    created = sum(row[0] for row in found)
    updated = sum(row[1] for row in found)
    return OfferCounts(created, updated, total - created - updated)


def _with_constants(
    rows: pa.RecordBatch, constants: Mapping[str, int], kind: Any
) -> pa.RecordBatch:
    for name, value in constants.items():
        rows = rows.append_column(name, pa.repeat(pa.scalar(value, kind), rows.num_rows))
    return rows


class SqlBulk(SqlStage, SqlStreams):
    """Batches of one kind in an SQL database; see `bulk.port.BulkStore`."""

    def __init__(self, kind: Kind, settling: Settling) -> None:
        self.kind_id = kind.id
        messages = SqlStore(kind, settling, SWEEP_INTERVAL, Watermark())
        self.notify = messages.notify
        self.counts = messages.counts
        SqlStage.__init__(self, kind.id, settling)
        SqlStreams.__init__(self, kind.id, messages, settling)


def open_bulk(dialect: str, kind: str, *, migrate: bool, history: bool) -> Steps[SqlBulk]:
    """Check or create the tables, and open the bulk store of a kind."""
    found = yield from find_kind(dialect, kind, migrate=migrate)
    return SqlBulk(found, Settling(found.id, HistoryDays() if history else None))
