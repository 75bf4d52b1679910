"""An archive of Parquet files in a folder."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import date, timedelta

from pyspark.sql import DataFrame, SparkSession

from duequeue.pipeline.archiving.batches import Batches, Manifest
from duequeue.pipeline.archiving.joining import Joining
from duequeue.pipeline.folder import Folder
from duequeue.pipeline.history_frames import archived_rows, day_folder, days_of
from duequeue.port.history_table import DayBounds

EXPIRED = "_expired"
# Small files are joined only in days of this age, since older days hardly get new ones.
RECENT = timedelta(days=7)


class ParquetTarget:
    """A folder with a folder for each day and queue; see `Target`."""

    def __init__(self, spark: SparkSession, folder: Folder) -> None:
        self.path = folder.path
        self._spark = spark
        self._folder = folder
        self._batches = Batches(folder)
        self._joining = Joining(spark, folder)

    def locked(self) -> AbstractContextManager[None]:
        """Lock a file."""
        return self._folder.locked()

    def recover(self) -> dict[date, int]:
        """Publish or discard a staged batch, whose rows may still be in the database too."""
        self._folder.delete(EXPIRED)
        with self._undisturbed():
            pass
        manifest = self._batches.recover()
        return {manifest.day: manifest.rows} if manifest else {}

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
        """Replace small files, unless a report or a replay is reading them."""
        with self._undisturbed() as undisturbed:
            if undisturbed:
                self._joining.join([day_folder(day) for day in self._recent_days(today)])

    def remove_before(self, day: date) -> list[date]:
        """Move each day out of sight in one step, then delete it, unless somebody is reading."""
        with self._undisturbed() as undisturbed:
            old = [each for each in days_of(self._folder) if each < day] if undisturbed else []
            for each in old:
                self._folder.move(day_folder(each), f"{EXPIRED}/{day_folder(each)}")
            self._folder.delete(EXPIRED)
        return old

    @contextmanager
    def _undisturbed(self) -> Iterator[bool]:
        """Yield whether nobody reads the folder and no interrupted join of files is left in it."""
        with self._folder.unread() as unread:
            yield unread and self._joining.is_finished()

    def _recent_days(self, today: date) -> Iterator[date]:
        return (day for day in days_of(self._folder) if today - RECENT <= day < today)


def _manifest(day: date, bounds: DayBounds, by_queue: dict[str, int]) -> Manifest:
    first_id, last_id, rows = bounds
    return Manifest(day, rows, first_id, last_id, by_queue)
