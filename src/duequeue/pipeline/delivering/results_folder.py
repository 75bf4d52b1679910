"""The folder with the results of a delivery, which only one checkpoint may write.

Spark's file sink lists its files in a log, and skips batches whose numbers are in that log. So a
second checkpoint, whose numbers begin anew, would not have its messages handled.
"""

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import chain
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from duequeue.errors import InvalidArgument
from duequeue.pipeline.checkpoint import Checkpoint
from duequeue.pipeline.folder import Folder
from duequeue.pipeline.spark_log import COMPACT, number_of, parsed

_LOG = "_spark_metadata"
_WRITTEN_BY = "_duequeue_checkpoint"
_FILE = re.compile(r"part-\d+-[0-9a-f-]{36}[-.].*parquet")


class ResultsFolder:
    """Parquet files of a delivery, as the log of Spark's file sink lists them."""

    def __init__(self, spark: SparkSession, path: str | Path) -> None:
        self._folder = Folder(spark, path, "results")
        self.path = self._folder.path

    def writer(self, rows: DataFrame) -> DataStreamWriter:
        """Write rows of a stream."""
        writer = rows.writeStream.format("parquet").option("compression", "zstd")
        return writer.option("path", self.path)

    def last_batch(self) -> int:
        """Return the number of the last batch in the log, or -1."""
        return max(map(number_of, self._folder.names(_LOG)), default=-1)

    def consumer(self) -> str | None:
        """Return the name of the consumer whose messages the folder has, if it is known."""
        has = self._folder.has(_WRITTEN_BY)
        return self._folder.read(_WRITTEN_BY).decode() if has else None

    def locked(self) -> AbstractContextManager[None]:
        """Keep other runs out."""
        return self._folder.locked()

    @contextmanager
    def written_by(self, checkpoint: Checkpoint) -> Iterator[None]:
        """Let a run write that has locked the folder; raise unless this checkpoint may go on there.

        Before and after that, remove the files of tries that were never committed. Only Spark
        knows from its log that they do not count.
        """
        self._check(checkpoint)
        self._claim(checkpoint)
        self._remove_uncommitted()
        try:
            yield
        finally:
            self._remove_uncommitted()

    def check_owner(self, checkpoint: Checkpoint) -> None:
        """Raise if another checkpoint is known to have written the results."""
        owner = self.consumer()
        if self.last_batch() >= 0 and owner not in {None, checkpoint.known_consumer()}:
            raise self._not_from(checkpoint)

    def _check(self, checkpoint: Checkpoint) -> None:
        """Raise, before anything is written, if the sink would skip batches of the checkpoint."""
        last = self.last_batch()
        if last < 0 and self.consumer() is None and self._files():
            raise self._refusal("has Parquet files that no delivery has listed there: name another")
        self.check_owner(checkpoint)
        if checkpoint.last_batch() < last:
            raise self._not_from(checkpoint)

    def _not_from(self, checkpoint: Checkpoint) -> InvalidArgument:
        return self._refusal(
            f"has results that were not written from checkpoint {checkpoint.path}, so Spark would "
            "skip new messages: give that checkpoint, or name another folder for results (or "
            "reset the checkpoint, if it was lost: --reset-checkpoint)"
        )

    def _refusal(self, why: str) -> InvalidArgument:
        return InvalidArgument("results", text=f"results: folder {self.path} {why}")

    def _claim(self, checkpoint: Checkpoint) -> None:
        consumer = checkpoint.consumer()
        if self.consumer() != consumer:
            self._folder.delete(_WRITTEN_BY)
            self._folder.write(_WRITTEN_BY, consumer.encode())

    def _remove_uncommitted(self) -> None:
        listed = self._listed()
        for name in self._files():
            if name not in listed:
                self._folder.delete(name)

    def _files(self) -> list[str]:
        return [name for name in self._folder.names() if _FILE.fullmatch(name)]

    def _listed(self) -> set[str]:
        """Return the names of the files in the log; a compact file repeats those before it."""
        names = self._folder.names(_LOG)
        compact = max((number_of(name) for name in names if name.endswith(COMPACT)), default=-1)
        since = [
            name
            for name in names
            if number_of(name) > compact or (name.endswith(COMPACT) and number_of(name) == compact)
        ]
        lines = chain.from_iterable(parsed(self._folder.read(f"{_LOG}/{name}")) for name in since)
        return {line["path"].rpartition("/")[2] for line in lines}
