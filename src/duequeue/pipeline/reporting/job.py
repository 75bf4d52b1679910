"""`report` writes a page and its tables: how many, how late, what went wrong, what is to come."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from functools import reduce
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import StructType

from duequeue.backends import absolute, backend_for
from duequeue.bulk import bulk_backend_for
from duequeue.clock import Clock, SystemClock
from duequeue.defaults import REPORT_DAYS
from duequeue.errors import InvalidArgument
from duequeue.history import History
from duequeue.pipeline.folder import Folder, is_url
from duequeue.pipeline.history_frames import IDENTITY, archived_rows, live_rows
from duequeue.pipeline.history_source import ANONYMOUS, SETTLED
from duequeue.pipeline.progress import NoProgress, Progress, spark_progress
from duequeue.pipeline.reporting.frames import (
    AHEAD_HOURS,
    HOUR,
    counts,
    facts,
    in_steps,
    span_of,
    start_of,
)
from duequeue.pipeline.reporting.page import Period, page
from duequeue.pipeline.reporting.steps import STEPS, fitting_step
from duequeue.pipeline.reporting.tables import Tables
from duequeue.port.history_table import BurialReason, ScheduledHour

PAGE = "report.html"
# Reasons often contain keys or numbers, so there may be as many reasons as burials.
MOST_REASONS = 1000


class Report(NamedTuple):
    """Where the page is, and how many messages it is about.

    The page is a URL if the folder was given as one, and a path otherwise.
    """

    page: Path | str
    settled: int


def report(
    spark: SparkSession,
    *,
    folder: str | Path,
    archive: str | Path | None = None,
    url: str | None = None,
    days: int = REPORT_DAYS,
    step: timedelta | None = None,
    clock: Clock | None = None,
    progress: Progress | None = None,
) -> Report:
    """Report on an archive, on the history that is still in a database, or on both.

    Only a database knows which messages are to come, and why messages were buried. Without a step,
    the plots use the finest one that fits the time over which messages were settled.
    """
    if archive is None and url is None:
        raise InvalidArgument(
            "archive", text="there is nothing to report on: give an archive, a url, or both"
        )
    if type(days) is not int or days < 1:
        raise InvalidArgument("days", f"must be a whole number above 0, not {days!r}")
    if step is not None and step not in STEPS:
        raise InvalidArgument(
            "step", f"must be one {' or one '.join(STEPS.values())}, not {step!r}"
        )
    now = (clock or SystemClock()).now().astimezone(UTC)
    since = start_of(now - timedelta(days=days), HOUR)
    target = Folder(spark, folder) if is_url(folder) else None
    reporter = progress or NoProgress()
    source = None if archive is None else _existing(spark, archive)
    with source.being_read() if source else nullcontext():
        found = _read(spark, reporter, source, url, since, now)
        tables, step = _count(spark, reporter, found, step)
    reporter.step("drawing")
    with target.written_locally() if target else nullcontext(Path(folder)) as place:
        names = tables.write(place / "tables")
        period = Period(since, now, step)
        (place / PAGE).write_text(page(tables, names, period, _sources(archive, url)), "utf-8")
    written = target.of(PAGE) if target else Path(folder) / PAGE
    return Report(written, tables.total["settled"][0].as_py())


def _count(
    spark: SparkSession, reporter: Progress, found: "Found", step: timedelta | None
) -> tuple[Tables, timedelta]:
    """Let Spark count, and return the tables and their step of time.

    The facts are kept, because their span is known only when all rows were read. If a cluster loses
    an executor in the meantime, Spark reads a part of them again.
    """
    with _kept(facts(found.settled)) as kept:
        with spark_progress(spark, reporter, "reading"):
            fitting = fitting_step(span_of(kept))
        stepped = in_steps(kept, step or fitting)
        with spark_progress(spark, reporter, "counting"), _kept(counts(stepped)) as counted:
            tables = Tables.of(counted, found.scheduled, found.burials)
    return tables, step or fitting


@contextmanager
def _kept(frame: DataFrame) -> Iterator[DataFrame]:
    """Keep what Spark computes of a frame for as long as it is used."""
    kept = frame.persist()
    try:
        yield kept
    finally:
        kept.unpersist()


class Found(NamedTuple):
    """The data of a report: settled and scheduled messages, and the reasons for burials."""

    settled: DataFrame
    scheduled: list[ScheduledHour]
    burials: list[BurialReason]


def _read(
    spark: SparkSession,
    reporter: Progress,
    folder: Folder | None,
    url: str | None,
    since: datetime,
    now: datetime,
) -> Found:
    """Find the rows of the archive and of the database, as far as they are given."""
    if url is None:
        return Found(_archived(spark, folder, since, now), [], [])
    bulk_backend_for(absolute(url))  # raises if the URL is wrong
    with History.open(url) as history:
        live = _live(spark, url, history, since, SETTLED if folder else ANONYMOUS)
        scheduled = history.scheduled(now, now + AHEAD_HOURS * HOUR)
        burials = history.burial_reasons(since, MOST_REASONS)
    if folder is None:
        return Found(live, scheduled, burials)
    # An archive run copies rows from the database and then removes them. So the database is read
    # first: rows that are moved meanwhile are found twice and counted once, instead of not at all.
    with spark_progress(spark, reporter, "reading the database"):
        live = live.localCheckpoint()
    archived = _archived(spark, folder, since, now)
    settled = archived.unionByName(live.join(archived, IDENTITY, "left_anti"))
    return Found(settled, scheduled, burials)


def _existing(spark: SparkSession, archive: str | Path) -> Folder:
    folder = Folder(spark, archive, "archive")
    if not folder.has(""):
        raise InvalidArgument(
            "archive", f"{folder.path} does not exist: run the archive job first, or leave it out"
        )
    return folder


def _archived(
    spark: SparkSession, folder: Folder | None, since: datetime, now: datetime
) -> DataFrame:
    if folder is None:
        return spark.createDataFrame([], SETTLED)
    days = archived_rows(spark, folder, since.date(), now.date())
    return _settled_since(days.select(*SETTLED.fieldNames()), since)


def _live(
    spark: SparkSession, url: str, history: History, since: datetime, schema: StructType
) -> DataFrame:
    days = sorted({found.day for found in history.days() if found.day >= since.date()})
    frames = [live_rows(spark, url, day, history.day_bounds(day), schema) for day in days]
    rows = reduce(DataFrame.unionByName, frames, spark.createDataFrame([], schema))
    return _settled_since(rows, since)


def _settled_since(rows: DataFrame, since: datetime) -> DataFrame:
    return rows.where(F.col("settled_at") >= F.lit(since))


def _sources(archive: str | Path | None, url: str | None) -> list[str]:
    """Name the sources without their passwords."""
    named = [] if archive is None else [f"the archive in {Path(archive).name}"]
    return named if url is None else [*named, backend_for(url).address]
