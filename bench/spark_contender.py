"""The base of contenders on Spark, which have a local session that is warm before it is timed."""

from collections.abc import Mapping
from time import perf_counter

from pyspark.sql import DataFrame

from bench.contender import Contender
from bench.reminders import PARTS, empty_table, full_table, make_table, reminders
from duequeue.spark import local_session

# Java compiles code that runs often, and continues to do so for some time.
WARM_UPS = 3


class SparkContender(Contender):
    """A contender that writes and reads DataFrames, two partitions at a time."""

    config: Mapping[str, str] = {}

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.spark = local_session("bench", cores=str(PARTS), memory="2g", config=self.config)
        make_table(url)

    def close(self) -> None:
        """End the session."""
        self.spark.stop()

    def write(self, frame: DataFrame) -> None:
        """Write a frame of reminders."""
        raise NotImplementedError

    def read(self, messages: int) -> DataFrame:
        """Return all messages as a frame that is planned but not yet read."""
        raise NotImplementedError

    def write_new(self, messages: int) -> float:
        """Write into an empty table, after an untimed warm-up."""
        for _ in range(WARM_UPS):
            self.write(reminders(self.spark, messages))
            empty_table(self.url)
        return self.timed_write(messages)

    def read_all(self, messages: int) -> float:
        """Read and discard every column, after an untimed warm-up."""
        full_table(self.url, messages)
        for _ in range(WARM_UPS):
            self.timed_read(messages)
        return self.timed_read(messages)

    def timed_read(self, messages: int) -> float:
        """Plan a read, read and discard every column, and return the seconds."""
        began = perf_counter()
        self.read(messages).write.format("noop").mode("overwrite").save()
        return perf_counter() - began

    def timed_write(self, messages: int, text: str = "x") -> float:
        """Write a frame, and return the seconds."""
        frame = reminders(self.spark, messages, text)
        began = perf_counter()
        self.write(frame)
        return perf_counter() - began
