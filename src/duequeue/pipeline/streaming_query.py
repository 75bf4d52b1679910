"""Streaming queries that a job waits for: counted as they go, stopped by Ctrl-C."""

from collections.abc import Callable
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from duequeue.spark.session import activate

SECONDS = 1

# The counts of one micro-batch, by name.
Counts = dict[str, int]


class BatchTotals:
    """Adds up what each micro-batch of a query has observed, once each."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._last_batch = -1
        self.counts: Counts = {}

    def look(self, query: StreamingQuery) -> None:
        """Take note of batches that are done since the last look."""
        for done in query.recentProgress:
            if done.batchId > self._last_batch and self._name in done.observedMetrics:
                self._last_batch = done.batchId
                for name, count in done.observedMetrics[self._name].asDict().items():
                    self.counts[name] = self.counts.get(name, 0) + (count or 0)


def run_query(
    spark: SparkSession,
    writer: DataStreamWriter,
    totals: BatchTotals,
    told: Callable[[Counts], None],
    *,
    forever: bool,
) -> None:
    """Run until everything that was there at the start is done; or forever, until Ctrl-C."""
    trigger: Any = {"processingTime": "0 seconds"} if forever else {"availableNow": True}
    activate(spark)
    query = writer.trigger(**trigger).start()
    try:
        while not query.awaitTermination(SECONDS):
            totals.look(query)
            told(totals.counts)
    finally:
        # What was being handled stays leased, and comes again when the job is run again.
        query.stop()
    totals.look(query)
