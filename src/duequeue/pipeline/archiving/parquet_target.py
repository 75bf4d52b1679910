"""An archive of Parquet files in a folder."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import date, timedelta

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from duequeue.pipeline.archiving.batches import Batches, Manifest
from duequeue.pipeline.folder import Folder
from duequeue.pipeline.history_frames import archived_rows, day_folder, days_of, files_of
from duequeue.port.history_table import DayBounds

EXPIRED = "_expired"
# Small files are joined only in days of this age, since older days hardly get new ones.
RECENT = timedelta(days=7)
SMALL_BYTES = 16 * 1024 * 1024
# Two or three files do no harm. A run every hour with today's rows leaves 24.
MANY_FILES = 4


class ParquetTarget:
    """A folder with a folder for each day and queue; see `Target`."""

    def __init__(self, spark: SparkSession, folder: Folder) -> None:
        self.path = folder.path
        self._spark = spark
        self._folder = folder
        self._batches = Batches(spark, folder)

    def locked(self) -> AbstractContextManager[None]:
        """Lock a file."""
        return self._folder.locked()

    def recover(self) -> dict[date, int]:
        """Publish or discard a staged batch, whose rows may still be in the database too."""
        self._folder.delete(EXPIRED)
        manifest = self._batches.recover()
        return {manifest.day: manifest.rows} if manifest and not manifest.replaces else {}

    def rows_of(self, day: date) -> DataFrame | None:
        """Read the day's files."""
        if not self._folder.has(day_folder(day)):
            return None
        return archived_rows(self._spark, self._folder, day, day)

    def add(self, day: date, rows: DataFrame, bounds: DayBounds, there: int) -> int | None:
        """Stage the rows, count them on the disk, and move them into place."""
        by_queue = self._batches.stage(rows, bounds)
        copied = sum(by_queue.values())
        accounted_for = copied + there == bounds.rows
        if copied and accounted_for:
            self._batches.seal(_manifest(day, bounds._replace(rows=copied), by_queue))
            self._batches.publish()
        else:
            self._batches.discard()
        return copied if accounted_for else None

    def compact(self, today: date) -> None:
        """Replace small files, unless a report is reading them."""
        with self._folder.unread() as unread:
            for day in self._recent_days(today) if unread else ():
                if files := self._small_files(day):
                    self._replace(day, files)

    def remove_before(self, day: date) -> list[date]:
        """Move each day out of sight in one step, then delete it, unless a report is reading."""
        with self._folder.unread() as unread:
            old = [each for each in days_of(self._folder) if each < day] if unread else []
            for each in old:
                self._folder.move(day_folder(each), f"{EXPIRED}/{day_folder(each)}")
            self._folder.delete(EXPIRED)
        return old

    def _recent_days(self, today: date) -> Iterator[date]:
        return (day for day in days_of(self._folder) if today - RECENT <= day < today)

    def _small_files(self, day: date) -> list[str]:
        """List the small files of the queues that have many of them."""
        found = []
        for queue in self._folder.names(day_folder(day)):
            if queue.startswith("queue="):
                sizes = self._folder.sizes(f"{day_folder(day)}/{queue}")
                small = [name for name, size in sizes.items() if size < SMALL_BYTES]
                if len(small) >= MANY_FILES:
                    found += [f"{day_folder(day)}/{queue}/{name}" for name in small]
        return found

    def _replace(self, day: date, files: list[str]) -> None:
        rows = files_of(self._spark, self._folder, files)
        (found,) = rows.agg(F.min("id"), F.max("id"), F.count("*")).collect()
        bounds = DayBounds(*found)
        by_queue = self._batches.stage(rows.drop("day"), bounds)
        if sum(by_queue.values()) != bounds.rows:  # then the old files stay
            self._batches.discard()
            return
        self._batches.seal(_manifest(day, bounds, by_queue, files))
        self._batches.publish()


def _manifest(
    day: date, bounds: DayBounds, by_queue: dict[str, int], replaces: Sequence[str] = ()
) -> Manifest:
    first_id, last_id, rows = bounds
    return Manifest(day, rows, first_id, last_id, by_queue, list(replaces))
