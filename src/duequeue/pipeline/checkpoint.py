"""The folder in which Spark records how far a streaming query is, and its repair after a kill."""

from pathlib import Path
from uuid import uuid4

from pyspark.sql import SparkSession

from duequeue.pipeline.folder import Folder

_OFFSETS = "offsets"
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
        numbers = [int(name) for name in self._folder.names(_OFFSETS) if name.isdecimal()]
        return max(numbers, default=-1)

    def known_consumer(self) -> str | None:
        """Return the name that is stored already, if any."""
        return self._folder.read(_CONSUMER).decode() if self._folder.has(_CONSUMER) else None

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
