"""Micro-batches that are delivered: leased, extended and acked as a whole."""

import json
from collections.abc import Mapping, Sequence
from operator import itemgetter

from duequeue.bulk.port import (
    COLUMNS,
    ID,
    PAGE_BYTES,
    Backlog,
    BatchId,
    MessageRow,
    Reach,
    StreamBatch,
    token_of,
)
from duequeue.port.listing import Position
from duequeue.port.store import Burial, Release, Steps
from duequeue.stores.sql.commands import BEGIN, Execute, Parameters, Query, Row
from duequeue.stores.sql.settling import Settling
from duequeue.stores.sql.store import SqlStore
from duequeue.stores.sql.watermark import BEGINNING, Claim, Start, Watermark

# How often, in milliseconds, a stream looks before the last message that it has leased.
SWEEP_INTERVAL = 3000

_DELIVER_AT = COLUMNS.index("deliver_at")


class SqlStreams:
    """The micro-batches of one kind; see `bulk.port.BulkStore`."""

    def __init__(self, kind_id: int, messages: SqlStore, settling: Settling) -> None:
        self._kind = {"kind_id": kind_id}
        self._messages = messages
        self._settling = settling
        self._watermark = Watermark()

    def last_id(self) -> Steps[int]:
        """Look up the end of the index."""
        rows: list[Row] = yield Query("last_message")
        return int(rows[0][0])

    def backlog(self, due_until: int, now: int, most: int) -> Steps[Backlog]:
        """Walk along the index of due times."""
        of = {**self._kind, "due_until": due_until, "now": now, "most": most}
        rows: list[Row] = yield Query("measure_backlog", of)
        return Backlog(*rows[0])

    def lease(
        self, batch: BatchId, limit: int, slice_size: int, now: int, until: int, reach: Reach
    ) -> Steps[StreamBatch | None]:
        """Record what is due and lease it, from the watermark on or from the beginning."""
        yield BEGIN
        for known in (yield from self._batches(batch.consumer)):
            if known.sequence == batch.sequence:
                return known
        start = self._watermark.start(now, SWEEP_INTERVAL)
        lease = {
            **self._of(batch),
            "until": until,
            "now": now,
            "limit": limit,
            "slice_size": slice_size,
            **reach._asdict(),
        }
        slices = yield from self._gather(lease, start)
        if not slices and start.position != BEGINNING:
            start = self._watermark.sweep(now)
            slices = yield from self._gather(lease, start)
        if not slices:
            return None
        token = token_of(batch)
        yield Execute("lease_gathered", {**self._of(batch), "token": token, "until": until})
        yield Execute("forget_batch_responses", self._of(batch))
        leased = StreamBatch(batch.sequence, len(slices), sum(row[2] for row in slices))
        last = max(Position(row[0], row[1]) for row in slices)
        self._watermark.claimed(start, last, Claim(token, 1, until))
        return leased

    def extend(self, consumer: str, until: int) -> Steps[int]:
        """Extend the batches one after the other."""
        yield BEGIN
        held = 0
        for batch in (yield from self._batches(consumer)):
            of = self._of(BatchId(consumer, batch.sequence))
            token = token_of(BatchId(consumer, batch.sequence))
            held += yield Execute("extend_stream_batch", {**of, "token": token, "until": until})
            yield Execute("note_stream_lease", {**of, "until": until})
            self._watermark.extended([token], until)
        return held

    def ack(self, through: BatchId, now: int) -> Steps[int]:
        """Delete the messages of each batch, then the batch."""
        yield from self._settling.prepare(now)
        yield BEGIN
        acked = 0
        for batch in (yield from self._batches(through.consumer)):
            if batch.sequence <= through.sequence:
                done = BatchId(through.consumer, batch.sequence)
                token = token_of(done)
                leased = {**self._of(done), "token": token}
                acked += yield from self._delete(leased, now)
                yield Execute("forget_stream_batch", self._of(done))
                self._watermark.settled([token])
        return acked

    def first_batch(self, consumer: str) -> Steps[StreamBatch | None]:
        """Read the recorded batches."""
        batches = yield from self._batches(consumer)
        return batches[0] if batches else None

    def forget_stale(self, before: int) -> Steps[None]:
        """Delete batches by the end of their leases."""
        yield Execute("forget_stale_batches", {**self._kind, "before": before})

    def slice_lengths(self, batch: BatchId, slice_number: int, page_rows: int) -> Steps[list[int]]:
        """Look the messages up if their sizes matter; a missing one has the length 0."""
        rows: list[Row] = yield Query(
            "slice_lengths",
            {
                **self._of(batch),
                "slice": slice_number,
                "page_rows": page_rows,
                "page_bytes": PAGE_BYTES,
            },
        )
        lengths: list[int] = json.loads(rows[0][0]) if rows else []
        return lengths

    def read_slice(
        self, batch: BatchId, slice_number: int, page: range, *, with_payload: bool
    ) -> Steps[list[MessageRow]]:
        """Look the messages up by id and token."""
        rows: list[Row] = yield Query(
            "read_slice",
            {
                **self._of(batch),
                "slice": slice_number,
                "first": page.start,
                "last": page.stop,
                "token": token_of(batch),
                "with_payload": with_payload,
            },
        )
        rows.sort(key=itemgetter(_DELIVER_AT, ID))
        return rows

    def note_read(self, batch: BatchId, slice_number: int) -> Steps[None]:
        """Update the slice."""
        yield Execute("note_slice_read", {**self._of(batch), "slice": slice_number})

    def unread(self, through: BatchId) -> Steps[list[tuple[BatchId, int]]]:
        """Read the recorded slices."""
        rows: list[Row] = yield Query("unread_slices", self._of(through))
        return [(BatchId(through.consumer, sequence), number) for sequence, number in rows]

    def note_handled(self, batch: BatchId, handler_ms: Mapping[int, int]) -> Steps[None]:
        """Add the times to those of the slice, which the first id identifies."""
        noted = {"id": next(iter(handler_ms)), "handler_ms": json.dumps(handler_ms)}
        yield Execute("note_handled", {**self._of(batch), **noted})

    def release(self, batch: BatchId, releases: Sequence[Release]) -> Steps[set[int]]:
        """Release them like any other messages."""
        token = token_of(batch)
        ours = [release._replace(lease=release.lease._replace(token=token)) for release in releases]
        return (yield from self._messages.release(ours))

    def bury(self, batch: BatchId, burials: Sequence[Burial], now: int) -> Steps[set[int]]:
        """Bury them like any other messages, as delivered when the batch was leased."""
        rows: list[Row] = yield Query("when_leased", self._of(batch))
        token, leased_at = token_of(batch), rows[0][0]
        ours = [
            burial._replace(
                lease=burial.lease._replace(
                    token=token,
                    delivered_at=burial.lease.delivered_at if leased_at is None else leased_at,
                )
            )
            for burial in burials
        ]
        return (yield from self._messages.bury(ours, now))

    def _delete(self, batch: Parameters, now: int) -> Steps[int]:
        """Delete the messages that a batch still holds, and count them."""
        if not self._settling.keeps_history:
            count: int = yield Execute("remove_stream_batch", batch)
            return count
        removal = Query("remove_stream_batch_with_history", {**batch, "now": now})
        return sum(row[0] for row in (yield from self._settling.rows_of(removal, now)))

    def _gather(self, lease: Parameters, start: Start) -> Steps[list[Row]]:
        after = {"after_due": start.position.due_at, "after_id": start.position.id}
        slices: list[Row] = yield Query("gather_stream_batch", {**lease, **after})
        return slices

    def _batches(self, consumer: str) -> Steps[list[StreamBatch]]:
        of = {**self._kind, "consumer": consumer}
        rows: list[Row] = yield Query("list_stream_batches", of)
        return [StreamBatch(*row) for row in rows]

    def _of(self, batch: BatchId) -> dict[str, object]:
        return {**self._kind, **batch._asdict()}
