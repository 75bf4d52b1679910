"""`archive`: the history moves from the database into Parquet, each row once."""

from dataclasses import dataclass
from datetime import UTC, date
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import SparkSession

from duequeue.clock import Clock, SystemClock
from duequeue.connect import absolute, bulk_backend_for
from duequeue.history import History
from duequeue.pipeline.archiving.batches import Batches, Manifest
from duequeue.pipeline.folder import Folder
from duequeue.pipeline.history_frames import IDENTITY, archived_rows, day_folder, live_rows
from duequeue.pipeline.progress import Progress, Silence, following
from duequeue.port.history_table import DayBounds

# How often rows may come late for a day before it is left for the next run.
MOST_ROUNDS = 5


class Archived(NamedTuple):
    """What a run has done; `unfinished` are days in which rows kept changing."""

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

    Interrupted at any point, it is run again and goes on.
    """
    bulk_backend_for(absolute(url))  # says what is wrong with it
    watch, told = clock or SystemClock(), progress or Silence()
    place = Folder(spark, folder)
    with History.open(url, clock=watch) as history, place.locked():
        run = _Run(spark, url, history, place, Batches(spark, place), told)
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
        """Finish what an earlier run began. Its rows may still be in the database, too."""
        manifest = self.batches.recover()
        return {manifest.day: manifest.rows} if manifest else {}

    def archive_day(self, day: date, *, over: bool) -> _Moved:
        """Copy, then remove; again if rows have come in between."""
        moved = 0
        for _ in range(MOST_ROUNDS):
            bounds = self.history.day_bounds(day)
            if bounds.rows == 0:
                return _Moved(moved, removed=True)
            with following(self.spark, self.progress, f"{day}: copying {bounds.rows:,} rows"):
                copied = self._copy(day, bounds)
            if copied is None:
                continue
            moved += copied
            self.progress.step(f"{day}: removing {bounds.rows:,} rows from the database")
            remove = self.history.remove_day if over else self.history.remove_rows
            if remove(day, bounds):
                return _Moved(moved, removed=True)
        return _Moved(moved, removed=False)

    def _copy(self, day: date, bounds: DayBounds) -> int | None:
        """Bring what the archive does not have into it; None unless all rows are accounted for.

        Rows are only ever added between two ids, by transactions that took an id and committed
        late. So whatever is read has all that was counted, and as many rows are the same rows.
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
