"""`archive` moves the history from the database into Parquet, each row once."""

from dataclasses import dataclass
from datetime import UTC, date, timedelta
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import SparkSession

from duequeue.backends import absolute
from duequeue.bulk import bulk_backend_for
from duequeue.clock import Clock, SystemClock
from duequeue.errors import InvalidArgument
from duequeue.history import History
from duequeue.pipeline.archiving.parquet_target import ParquetTarget
from duequeue.pipeline.archiving.table_target import FORMATS, table_target
from duequeue.pipeline.archiving.target import Target
from duequeue.pipeline.folder import Folder
from duequeue.pipeline.history_frames import IDENTITY, live_rows
from duequeue.pipeline.progress import NoProgress, Progress, counted, spark_progress
from duequeue.port.history_table import DayBounds

# If rows keep arriving for a day, it is left to the next run after this many rounds.
MOST_ROUNDS = 5


class Archived(NamedTuple):
    """What a run has archived; `unfinished` are days that kept changing.

    `expired` are the days that were removed from the archive because of their age.
    """

    folder: str
    rows: int
    days: list[date]
    unfinished: list[date]
    expired: list[date] = []  # noqa: RUF012 - never changed


def archive(
    spark: SparkSession,
    *,
    url: str,
    folder: str | Path,
    include_today: bool = False,
    form: str = "parquet",
    keep: timedelta | None = None,
    clock: Clock | None = None,
    progress: Progress | None = None,
) -> Archived:
    """Move every day of the history that is over into `folder`, and remove it from the database.

    If the job is interrupted at any point, run it again, and it continues. With the `form`
    "delta", `folder` is the path of a table, and with "iceberg", its name. With `keep`, older days
    are removed from the archive.
    """
    watch, reporter = clock or SystemClock(), progress or NoProgress()
    today = watch.now().astimezone(UTC).date()
    days_kept = _checked_keep(keep, today)
    bulk_backend_for(absolute(url))  # raises if the URL is wrong
    target = _target(spark, form, folder)
    with History.open(url, clock=watch) as history, target.locked():
        run = _Run(spark, url, history, target, reporter)
        rows_by_day = target.recover()
        unfinished = []
        for day in sorted({found.day for found in history.days()}):
            if day < today or (day == today and include_today):
                rows = run.archive_day(day, over=day < today)
                rows_by_day[day] = rows_by_day.get(day, 0) + rows.moved
                unfinished += [] if rows.removed else [day]
        target.compact(today)
        expired = target.remove_before(today - days_kept) if days_kept else []
    rows_moved = sum(rows_by_day.values())
    return Archived(target.path, rows_moved, sorted(rows_by_day), unfinished, expired)


def _checked_keep(keep: timedelta | None, today: date) -> timedelta | None:
    most = today - date.min
    if keep is not None and not timedelta(days=1) <= keep <= most:
        raise InvalidArgument(
            "keep", f"must be at least one day and at most {most.days} days, not {keep}"
        )
    return keep


def _target(spark: SparkSession, form: str, folder: str | Path) -> Target:
    if form == "parquet":
        return ParquetTarget(spark, Folder(spark, folder))
    if form not in FORMATS:
        raise InvalidArgument("form", f"must be parquet, {' or '.join(FORMATS)}, not {form!r}")
    return table_target(spark, form, str(folder))


class _Moved(NamedTuple):
    moved: int
    removed: bool


@dataclass(frozen=True)
class _Run:
    spark: SparkSession
    url: str
    history: History
    target: Target
    progress: Progress

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
        archived = self.target.rows_of(day)
        if archived is not None:
            there = rows.join(archived, IDENTITY, "left_semi").count()
            rows = rows.join(archived, IDENTITY, "left_anti")
        return self.target.add(day, rows, bounds, there)
