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

    def consumer(self) -> str:
        """Return the name under which this checkpoint's query leases messages.

        The name is stored before the first lease, so that a run that was killed before its first
        offset finds its leases again.
        """
        if not self._folder.has(_CONSUMER):
            self._folder.write(_CONSUMER, str(uuid4()).encode())
        return self._folder.read(_CONSUMER).decode()
