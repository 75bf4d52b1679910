"""DueQueue's connector for Spark, on PostgreSQL."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from bench.driver_memory import driver_megabytes
from bench.reminders import QUEUE, full_table
from bench.spark_contender import SparkContender

PER_TRIGGER = 100_000
BATCHES = 10  # at least this many, however few messages there are
LOOK_SECONDS = 0.1


class OnSpark(SparkContender):
    """`format("duequeue")`, with every default."""

    def write(self, frame: DataFrame) -> None:
        """Offer a frame."""
        frame.write.format("duequeue").options(**self._where).mode("append").save()

    def read(self, messages: int) -> DataFrame:  # noqa: ARG002 - it reads all
        """Take a snapshot."""
        return self.spark.read.format("duequeue").options(**self._where).load()

    def write_equal(self, messages: int) -> float:
        """Offer again."""
        self.write_new(messages)
        return self.timed_write(messages)

    def write_changed(self, messages: int) -> float:
        """Offer with another payload."""
        self.write_new(messages)
        return self.timed_write(messages, "y")

    def drain(self, messages: int) -> float:
        """Stream into Parquet files."""
        with self._streaming(messages) as query:
            query.awaitTermination()
            batches = [done for done in query.recentProgress if done.numInputRows]
        # Java keeps compiling for a while, and the last batch has no next one to lease ahead.
        warm = batches[len(batches) // 2 : -1]
        seconds = sum(done.batchDuration for done in warm) / 1000
        return seconds * messages / sum(done.numInputRows for done in warm)

    def watch_memory(self, messages: int) -> list[float]:
        """Stream in the same way, and measure the memory after each micro-batch."""
        megabytes: list[float] = []
        with self._streaming(messages) as query:
            while query.isActive:
                time.sleep(LOOK_SECONDS)
                if len(query.recentProgress) > len(megabytes):
                    megabytes.append(driver_megabytes())
        return megabytes[:-1]  # at the last one, Spark may have ended the source

    @contextmanager
    def _streaming(self, messages: int) -> Iterator[StreamingQuery]:
        full_table(self.url, messages)
        most = str(min(PER_TRIGGER, messages // BATCHES))
        due = self.spark.readStream.format("duequeue").options(**self._where)
        with tempfile.TemporaryDirectory(prefix="duequeue-bench-") as folder:
            yield (
                due.option("maxMessagesPerTrigger", most)
                .load()
                .writeStream.format("parquet")
                .option("path", f"{folder}/handled")
                .option("checkpointLocation", f"{folder}/checkpoint")
                .trigger(availableNow=True)
                .start()
            )

    @property
    def _where(self) -> dict[str, str]:
        return {"url": self.url, "queue": QUEUE}
