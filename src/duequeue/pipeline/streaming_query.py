"""Streaming queries that a job waits for; they are counted as they run, and Ctrl-C stops them."""

from collections.abc import Callable
from typing import Any

from pyspark.sql import Row, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from duequeue.pipeline.timestamps import microseconds
from duequeue.spark.session import activate

REPORT_SECONDS = 1

# The counts of one micro-batch, by name.
Counts = dict[str, int]


class BatchTotals:
    """Adds up the counts of a query's micro-batches, each batch once."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._last_batch = -1
        self.counts: Counts = {}

    def update(self, query: StreamingQuery) -> None:
        """Add the batches that have finished since the last call."""
        for done in query.recentProgress:
            if done.batchId > self._last_batch and self._name in done.observedMetrics:
                self._last_batch = done.batchId
                for name, count in _observed(done.observedMetrics[self._name]).items():
                    self.counts[name] = self.counts.get(name, 0) + (count or 0)


def _observed(row: Row) -> dict[str, int | None]:
    """Return the counts of a batch by name; Spark Connect separates the names from the values."""
    found = row.asDict()
    if found.keys() != {"values", "schema"}:
        return found
    names = [field["name"] for field in found["schema"]["fields"]]
    return dict(zip(names, found["values"], strict=True))


def run_query(
    spark: SparkSession,
    writer: DataStreamWriter,
    totals: BatchTotals,
    report: Callable[[Counts], None],
    *,
    forever: bool,
) -> None:
    """Run until all that was there at the start is done, or forever, which means until Ctrl-C."""
    trigger: Any = {"processingTime": "0 seconds"} if forever else {"availableNow": True}
    activate(spark)
    with microseconds(spark):
        query = writer.trigger(**trigger).start()
    try:
        while not query.awaitTermination(REPORT_SECONDS):
            totals.update(query)
            report(totals.counts)
    finally:
        # Messages that were being handled stay leased, and the next run delivers them again.
        query.stop()
    totals.update(query)
