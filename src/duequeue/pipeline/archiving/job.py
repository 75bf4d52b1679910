"""`archive` moves the history from the database into Parquet, each row once."""

from dataclasses import dataclass
from datetime import UTC, date
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import SparkSession

from duequeue.backends import absolute, bulk_backend_for
from duequeue.clock import Clock, SystemClock
from duequeue.history import History
from duequeue.pipeline.archiving.batches import Batches, Manifest
from duequeue.pipeline.folder import Folder
from duequeue.pipeline.history_frames import IDENTITY, archived_rows, day_folder, live_rows
from duequeue.pipeline.progress import NoProgress, Progress, counted, spark_progress
from duequeue.port.history_table import DayBounds

# If rows keep arriving for a day, it is left to the next run after this many rounds.
MOST_ROUNDS = 5


class Archived(NamedTuple):
    """What a run has archived; `unfinished` are days that kept changing."""

    folder: str
    rows: int
    days: list[date]
    unfinished: list[date]


def archive(
    spark: SparkSession,
    *,
    url: str,
    folder: str | Path,
    include_today: bool = False,
    clock: Clock | None = None,
    progress: Progress | None = None,
) -> Archived:
    """Move every day of the history that is over into `folder`, and remove it from the database.

    If the job is interrupted at any point, run it again, and it continues.
    """
    bulk_backend_for(absolute(url))  # raises if the URL is wrong
    watch, reporter = clock or SystemClock(), progress or NoProgress()
    place = Folder(spark, folder)
    with History.open(url, clock=watch) as history, place.locked():
        run = _Run(spark, url, history, place, Batches(spark, place), reporter)
        rows_by_day = run.recover()
        today = watch.now().astimezone(UTC).date()
        unfinished = []
        for day in sorted({found.day for found in history.days()}):
            if day < today or (day == today and include_today):
                rows = run.archive_day(day, over=day < today)
                rows_by_day[day] = rows_by_day.get(day, 0) + rows.moved
                unfinished += [] if rows.removed else [day]
    return Archived(place.path, sum(rows_by_day.values()), sorted(rows_by_day), unfinished)


class _Moved(NamedTuple):
    moved: int
    removed: bool


@dataclass(frozen=True)
class _Run:
    spark: SparkSession
    url: str
    history: History
    folder: Folder
    batches: Batches
    progress: Progress

    def recover(self) -> dict[date, int]:
        """Finish the batch of an earlier run, whose rows may still be in the database too."""
        manifest = self.batches.recover()
        return {manifest.day: manifest.rows} if manifest else {}

    def archive_day(self, day: date, *, over: bool) -> _Moved:
        """Copy the rows, then remove them; start over if more rows arrive in between."""
        moved = 0
        for _ in range(MOST_ROUNDS):
            bounds = self.history.day_bounds(day)
            if bounds.rows == 0:
                return _Moved(moved, removed=True)
            rows = counted(bounds.rows, "row")
            with spark_progress(self.spark, self.progress, f"{day}: copying {rows}"):
                copied = self._copy(day, bounds)
            if copied is None:
                continue
            moved += copied
            self.progress.step(f"{day}: removing {rows} from the database")
            remove = self.history.remove_day if over else self.history.remove_rows
            if remove(day, bounds):
                return _Moved(moved, removed=True)
        return _Moved(moved, removed=False)

    def _copy(self, day: date, bounds: DayBounds) -> int | None:
        """Add the missing rows to the archive; return None unless all rows are accounted for.

        Between two ids, rows are only ever added, by transactions that took an id and committed
        late. So the rows that are read include every counted one, and if the numbers are equal,
        the rows are the same.
        """
        rows = live_rows(self.spark, self.url, day, bounds)
        there = 0
        if self.folder.has(day_folder(day)):
            archived = archived_rows(self.spark, self.folder, day, day)
            there = rows.join(archived, IDENTITY, "left_semi").count()
            rows = rows.join(archived, IDENTITY, "left_anti")
        by_queue = self.batches.stage(rows)
        copied = sum(by_queue.values())
        accounted_for = copied + there == bounds.rows
        if copied and accounted_for:
            self.batches.seal(Manifest(day, copied, bounds.first_id, bounds.last_id, by_queue))
            self.batches.publish()
        else:
            self.batches.discard()
        return copied if accounted_for else None
