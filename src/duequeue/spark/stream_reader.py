"""`spark.readStream.format("duequeue")` leases on the driver, reads on executors, acks at commit.

Spark reports late, or never, that a batch is done. But when it asks for new messages, it passes the
offset where it starts, and every batch before that offset is in its commit log. So messages are
acked then, unless nobody has read them to the end, because some sinks skip a batch.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import accumulate
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from duequeue.bulk.port import ID, KEY, PAGE_BYTES, BatchId, MessageRow, Reach
from duequeue.errors import InvalidArgument, UndecodablePayload
from duequeue.instants import LATEST
from duequeue.port.store import Burial, Lease
from duequeue.spark.open_bulk import FIRST_CONTACT, OpenBulk
from duequeue.spark.options import Options
from duequeue.spark.read_rows import ATTEMPT, RowReader, without_garbage_collection
from duequeue.spark.stream_leases import NO_LIMIT, RunLimit, StreamLeases, forget_stale

PAGE_ROWS = 10_000

_ALL = 2**31 - 1


class Slice(InputPartition):
    """A slice of a micro-batch."""

    def __init__(self, batch: BatchId, number: int) -> None:
        super().__init__(number)
        self.batch = batch


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a stream. An offset is a consumer's name and the number of its micro-batches so far."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._leases: StreamLeases | None = None
        self._limit: RunLimit | None = None
        self._latest: dict[str, Any] = {}

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name, as those below
        """Start as a new consumer, unless the user has named one.

        A named consumer that has lost its checkpoint starts with its batches that are not acked.
        """
        named = self._options.consumer_id
        sequence = self._acked(named) if named else 0
        return {**self._offset(named or str(uuid4())), "sequence": sequence}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return how many messages a micro-batch may have."""
        return ReadMaxRows(self._options.max_messages_per_trigger)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Limit the run to the messages that are in the queue now."""
        with OpenBulk(self._options, FIRST_CONTACT) as bulk:
            now, last_id = bulk.now(), bulk.run(bulk.store.last_id)
            if self._options.include_future:
                counts = bulk.run(partial(bulk.store.counts, now))
                here = counts.due + counts.leased + counts.future
                self._limit = RunLimit(Reach(LATEST, last_id), here)
            else:
                self._limit = RunLimit(Reach(now, last_id), NO_LIMIT)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """Ack the batches that Spark has committed, and lease messages that are due."""
        self._check_queue(start)
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else _ALL
        batch = self._leases_of(start["consumer"]).advance(start["sequence"], most)
        if batch is None:
            return start
        self._latest = {**self._offset(start["consumer"]), **batch._asdict()}
        return self._latest

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        """Report how far the leases are and how many messages wait, for the query's progress."""
        if self._leases is None:
            return None
        return {**self._latest, **self._leases.figures()}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Return the slices of a batch, which after a restart may be one of the previous run."""
        self._check_queue(end)
        if start["sequence"] == end["sequence"] or "slices" not in end:  # nothing was leased
            return []
        self._leases_of(end["consumer"])  # keeps its leases alive
        batch = BatchId(end["consumer"], end["sequence"])
        return [Slice(batch, number) for number in range(end["slices"])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read a slice, page by page."""
        if not isinstance(partition, Slice):
            raise TypeError(f"partition must be a Slice, not {partition!r}")
        rows = self._options.batch_size or PAGE_ROWS
        reader = RowReader(self._schema, partition.batch, permissive=self._options.permissive)
        with OpenBulk(self._options) as bulk:
            measure = partial(bulk.store.slice_lengths, partition.batch, partition.value, rows)
            for page in pages(bulk.run(measure), rows):
                read = _read(reader, partition, page, bulk)
                if read is not None:
                    yield read
            bulk.run(partial(bulk.store.note_read, partition.batch, partition.value))

    def stop(self) -> None:
        """Stop extending the leases, and close the connections."""
        if self._leases is not None:
            self._leases.close()

    def _acked(self, consumer: str) -> int:
        with OpenBulk(self._options, FIRST_CONTACT) as bulk:
            forget_stale(bulk)  # Spark asks more than once and must get the same answer
            first = bulk.run(partial(bulk.store.first_batch, consumer))
        return first.sequence - 1 if first else 0

    def _offset(self, consumer: str) -> dict[str, Any]:
        return {"consumer": consumer, "queue": self._options.kind}

    def _check_queue(self, offset: dict[str, Any]) -> None:
        """Raise if an offset is that of another queue; offsets of early versions name no queue."""
        queue = offset.get("queue", self._options.kind)
        if queue != self._options.kind:
            raise InvalidArgument(
                "checkpointLocation",
                text=f"the checkpoint belongs to the queue {_shown(queue)}, but this query reads "
                f"{_shown(self._options.kind)}: give each query its own checkpointLocation",
            )

    def _leases_of(self, consumer: str) -> StreamLeases:
        if self._leases is None:
            bulk = OpenBulk(self._options, FIRST_CONTACT)
            self._leases = StreamLeases(bulk, self._options, consumer, self._limit)
        return self._leases


def _shown(kind: str) -> str:
    name, _, codec = kind.rpartition("|")
    return f"{name!r} with the codec {codec!r}"


def pages(lengths: Sequence[int], rows: int) -> Iterator[range]:
    """Cut a slice into pages of at most that many rows and about `PAGE_BYTES` of payloads."""
    first = 0
    while first < len(lengths):
        sizes = list(accumulate(lengths[first : first + rows]))
        page = range(first, first + max(1, bisect_right(sizes, PAGE_BYTES)))
        yield page
        first = page.stop


def _read(reader: RowReader, part: Slice, page: range, bulk: OpenBulk) -> pa.RecordBatch | None:
    """Read the messages of a page that the batch still holds; return None if it holds none."""
    with without_garbage_collection():
        read = partial(
            bulk.store.read_slice, part.batch, part.value, page, with_payload=reader.with_payload
        )
        rows = bulk.run(read)
        return _decoded(reader, rows, part.batch, bulk) if rows else None


def _decoded(
    reader: RowReader, rows: list[MessageRow], batch: BatchId, bulk: OpenBulk
) -> pa.RecordBatch:
    """Return the messages as a batch; bury those whose payload does not fit."""
    try:
        return reader.batch_of(rows)
    except UndecodablePayload:
        misfits = {row[ID]: reason for row in rows if (reason := reader.misfit(row))}
        now = bulk.now()
        burials = [
            Burial(Lease(row[ID], 0, now, row[KEY]), row[ATTEMPT], misfits[row[ID]])
            for row in rows
            if row[ID] in misfits
        ]
        bulk.run(partial(bulk.store.bury, batch, burials, now))
        return reader.batch_of([row for row in rows if row[ID] not in misfits])
