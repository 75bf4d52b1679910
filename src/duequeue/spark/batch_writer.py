"""`df.write.format("duequeue")` offers a DataFrame in bulk."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from duequeue.bulk.port import OfferCounts
from duequeue.spark.open_bulk import OpenBulk
from duequeue.spark.options import Options
from duequeue.spark.write_places import open_for_writing
from duequeue.spark.written_rows import CHUNK_ROWS, chunks, prepared


@dataclass
class OfferedPartition(WriterCommitMessage):
    """How many messages of one partition were created, updated and ignored."""

    counts: OfferCounts


class BatchWriter(DataSourceArrowWriter):
    """Offers each partition in chunks; a chunk is a transaction."""

    def __init__(self, options: Options) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> OfferedPartition:
        """Offer one partition; expect every key to be new until a chunk has one that is not."""
        options, total, expect_new = self._options, OfferCounts(), True
        found = (
            (chunk.num_rows, prepared(chunk, options))
            for chunk in chunks(iterator, options.batch_size or CHUNK_ROWS)
        )
        first = next(found, None)
        if first is None:  # an empty partition needs no connection
            return OfferedPartition(total)
        with open_for_writing(options) as bulk:
            for given, rows in chain([first], found):
                ingest = partial(bulk.store.ingest, rows, bulk.now(), expect_new=expect_new)
                counts, expect_new = bulk.run(ingest)
                if counts.created or counts.updated:
                    bulk.announce(pc.min(rows["due_at"]).as_py())
                twice = OfferCounts(ignored=given - rows.num_rows)
                total = total.plus(counts).plus(twice)
        return OfferedPartition(total)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Record the counts of the whole write if it has a run id."""
        if self._options.run_id is None:
            return
        total = OfferCounts()
        for message in messages:
            if isinstance(message, OfferedPartition):
                total = total.plus(message.counts)
        with OpenBulk(self._options) as bulk:
            bulk.run(partial(bulk.store.record, self._options.run_id, total, bulk.now()))
