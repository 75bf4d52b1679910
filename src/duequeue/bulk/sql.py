"""Batches that are offered: appended if they are new, merged if not, or staged until a commit."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from duequeue.errors import StoreError
from duequeue.port.bulk import (
    STALE_AFTER,
    UNKNOWN,
    OfferCounts,
    StageId,
    StreamCounts,
    Written,
    name_is_taken,
)
from duequeue.port.store import Steps
from duequeue.stores.sql.bulk.commands import Load, QueryBatch
from duequeue.stores.sql.commands import BEGIN, Execute, Query, QueryEach, Row
from duequeue.stores.sql.settling import Settling

# The number of a batch that does not belong to a stream; Spark's numbers begin with 0.
ALONE = -1


class SqlStage:
    """The staged and the offered batches of one kind; see `port.bulk.BulkStore`."""

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
