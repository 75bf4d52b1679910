"""Joins the small files of a day, so that a crash leaves each row readable once."""

import logging

import msgspec
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from duequeue.pipeline.archiving.layout import write_counted
from duequeue.pipeline.folder import Folder
from duequeue.pipeline.history_frames import files_of
from duequeue.pipeline.joined_files import JOINING, MANIFEST, Join, interrupted_join
from duequeue.port.history_table import DayBounds

SMALL_BYTES = 16 * 1024 * 1024
# Two or three files do no harm. A run every hour with today's rows leaves 24.
MANY_FILES = 4

logger = logging.getLogger("duequeue.archive")


class Joining:
    """Replaces small files of one archive; nobody may read it meanwhile."""

    def __init__(self, spark: SparkSession, folder: Folder) -> None:
        self._spark = spark
        self._folder = folder

    def join(self, days: list[str]) -> None:
        """Join the small files of these folders; log a warning if that fails."""
        try:
            for day in days:
                if small := self._small_files(day):
                    self._replace(day, small)
        except Exception:
            logger.warning(
                "the small files of archive %s were not joined; the next run tries again",
                self._folder.path,
                exc_info=True,
            )

    def is_finished(self) -> bool:
        """Finish an interrupted join; log a warning and return False if that fails."""
        try:
            self._finish()
        except Exception:
            logger.warning(
                "an interrupted join of small files of archive %s could not be finished; "
                "the next run tries again",
                self._folder.path,
                exc_info=True,
            )
            return False
        return True

    def _small_files(self, day: str) -> list[str]:
        """List the small files of the queues that have many of them."""
        found = []
        for queue in self._folder.names(day):
            if queue.startswith("queue="):
                sizes = self._folder.sizes(f"{day}/{queue}")
                small = [name for name in sizes if _is_rows(name) and sizes[name] < SMALL_BYTES]
                if len(small) >= MANY_FILES:
                    found += [f"{day}/{queue}/{name}" for name in small]
        return found

    def _replace(self, day: str, small: list[str]) -> None:
        rows = files_of(self._spark, self._folder, small)
        (found,) = rows.agg(F.min("id"), F.max("id"), F.count("*")).collect()
        bounds = DayBounds(*found)
        staged = f"{JOINING}/{day}"
        written = write_counted(rows.drop("day"), bounds, self._folder.of(staged))
        if sum(written.values()) == bounds.rows:  # otherwise the old files stay
            self._folder.keep(JOINING)
            self._seal(Join(self._new_files(day), small))
        self._finish()

    def _new_files(self, day: str) -> list[str]:
        return [
            f"{day}/{queue}/{name}"
            for queue in self._folder.names(f"{JOINING}/{day}")
            if queue.startswith("queue=")
            for name in self._folder.names(f"{JOINING}/{day}/{queue}")
        ]

    def _seal(self, join: Join) -> None:
        self._folder.write(MANIFEST, msgspec.json.format(msgspec.json.encode(join)))

    def _finish(self) -> None:
        """Move new files into place and delete the old ones; discard new files without a seal."""
        join = interrupted_join(self._folder)
        if join is not None:
            for each in join.adds:
                if not self._folder.has(each):
                    self._folder.move(f"{JOINING}/{each}", each)
            for each in join.replaces:
                self._folder.delete(each)
            self._folder.delete(MANIFEST)
        self._folder.delete(JOINING)


def _is_rows(name: str) -> bool:
    """Return whether Spark reads this file, and certainly as Parquet."""
    return name.endswith(".parquet") and not name.startswith(("_", "."))
