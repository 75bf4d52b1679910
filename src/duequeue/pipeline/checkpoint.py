"""The folder in which Spark records how far a streaming query is, and its repair after a kill."""

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

from pyspark.sql import SparkSession

from duequeue.errors import InvalidArgument
from duequeue.pipeline.folder import Folder
from duequeue.pipeline.spark_log import number_of, parsed, written

_OFFSETS = "offsets"
_COMMITS = "commits"
_METADATA = "metadata"
_CONSUMER = "duequeue-consumer"


class Checkpoint:
    """A checkpoint from which a job continues, whatever a killed run has left in it."""

    def __init__(self, spark: SparkSession, path: str | Path) -> None:
        self._folder = Folder(spark, path, "checkpoint")
        self.path = self._folder.path

    def repair(self) -> None:
        """Delete half-written files of a first offset, with which Spark would refuse to start.

        Spark writes an offset under a hidden name and then renames it. Before its first offset, it
        demands an empty folder, and counts hidden files too.
        """
        names = self._folder.names(_OFFSETS)
        if all(name.startswith(".") for name in names):
            for name in names:
                self._folder.delete(f"{_OFFSETS}/{name}")

    def last_batch(self) -> int:
        """Return the number of the last micro-batch that Spark has begun, or -1."""
        return max(map(number_of, self._folder.names(_OFFSETS)), default=-1)

    def check(self) -> None:
        """Raise if Spark cannot read a file with which it would start again."""
        for name in self._needed():
            if self._read(name) is None:
                raise InvalidArgument(
                    "checkpoint",
                    text=f"checkpoint: {self._folder.of(name)} is damaged or missing: run again "
                    "with reset_checkpoint=True (--reset-checkpoint), which begins a new log after "
                    "the last batch that was written; messages that were not acked come again",
                )

    def query(self) -> str | None:
        """Return the id of the query, if it can be read."""
        found = self._read(_METADATA)
        return found[0]["id"] if found else None

    def sequence(self, batch: int) -> int | None:
        """Return which of its consumer's batches a batch of Spark was, if it can be read."""
        found = self._read(f"{_OFFSETS}/{batch}")
        return found[-1]["sequence"] if found else None

    def reset(self, last: int, offset: dict[str, Any]) -> None:
        """Begin a new log after batch `last`, or from the start if that is -1.

        The id of the query and the name of the consumer stay. A reset that is interrupted has to
        be repeated, since until its end Spark has done less than the results have.
        """
        query = self.query() or str(uuid4())
        for name in (_COMMITS, _OFFSETS, _METADATA):
            self._folder.delete(name)
        if last < 0:
            return
        about = {"batchWatermarkMs": 0, "batchTimestampMs": 0, "conf": {}}
        self._folder.write(_METADATA, json.dumps({"id": query}).encode())
        self._folder.write(f"{_COMMITS}/{last}", written({"nextBatchWatermarkMs": 0}))
        for number in range(max(0, last - 1), last + 1):  # Spark reads the last two
            self._folder.write(f"{_OFFSETS}/{number}", written(about, offset))

    def known_consumer(self) -> str | None:
        """Return the name that is stored already, if any."""
        return self._folder.read(_CONSUMER).decode() if self._folder.has(_CONSUMER) else None

    def adopt(self, consumer: str) -> None:
        """Take the name of the consumer from another place, if this folder has none."""
        if self.known_consumer() is None:
            self._folder.write(_CONSUMER, consumer.encode())

    def consumer(self) -> str:
        """Return the name under which this checkpoint's query leases messages.

        The name is stored before the first lease, so that a run that was killed before its first
        offset finds its leases again.
        """
        known = self.known_consumer()
        if known is None:
            known = str(uuid4())
            self._folder.write(_CONSUMER, known.encode())
        return known

    def _needed(self) -> list[str]:
        last = self.last_batch()
        committed = max(map(number_of, self._folder.names(_COMMITS)), default=-1)
        names = [f"{_OFFSETS}/{number}" for number in (last - 1, last) if number >= 0]
        names += [f"{_COMMITS}/{committed}"] if committed >= 0 else []
        return [*names, _METADATA] if names or self._folder.has(_METADATA) else []

    def _read(self, name: str) -> list[dict[str, Any]] | None:
        """Return the lines of a file, or None if they are not what Spark writes there."""
        try:
            content = self._folder.read(name)
            lines = [json.loads(content)] if name == _METADATA else parsed(content)
        except Exception:  # noqa: BLE001 - Java has errors of its own, such as that of a checksum
            return None
        key = _KEYS[name.partition("/")[0]]
        return lines if lines and key in lines[-1] else None


# What the last line of each kind of file has.
_KEYS = {_METADATA: "id", _OFFSETS: "sequence", _COMMITS: "nextBatchWatermarkMs"}
