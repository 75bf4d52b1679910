"""`ingest` makes messages of rows, and sets aside the rows that cannot become one."""

from collections.abc import Mapping
from datetime import UTC
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession

from duequeue.backends import absolute
from duequeue.bulk.port import OfferCounts
from duequeue.clock import SystemClock
from duequeue.errors import InvalidArgument
from duequeue.pipeline.folder import Folder
from duequeue.pipeline.ingesting.frames import (
    REASON,
    Columns,
    checked_rows,
    messages,
    reasons,
    rejected,
)
from duequeue.pipeline.ingesting.sources import read_source
from duequeue.pipeline.progress import NoProgress, Progress, counted, spark_progress
from duequeue.spark.offering import offer
from duequeue.spark.open_bulk import FIRST_CONTACT, OpenBulk
from duequeue.spark.options import parse


class Ingested(NamedTuple):
    """How many rows there were, what became of them, and the folder of the rejected ones."""

    rows: int
    offered: OfferCounts
    rejected: dict[str, int]
    rejects: str | None


def ingest(
    spark: SparkSession,
    source: DataFrame | str | Path,
    *,
    url: str,
    queue: str,
    form: str | None = None,
    columns: Columns | None = None,
    rejects: str | Path | None = None,
    reader_options: Mapping[str, str] | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Ingested:
    """Offer every row that can become a message, and write the others to a new folder in `rejects`.

    Without `rejects`, a single bad row is an error, and nothing is offered. A second run leaves
    messages alone that are already in the queue, except those whose rows have changed.
    """
    url, reporter = absolute(url), progress or NoProgress()
    parsed = parse({**options, "url": url, "queue": queue})
    OpenBulk(parsed, FIRST_CONTACT).close()  # raises at once if the database cannot be reached
    folder = None if rejects is None else Folder(spark, rejects, "rejects")
    frame = (
        source
        if isinstance(source, DataFrame)
        else read_source(spark, source, form, reader_options or {})
    )
    rows = checked_rows(frame, columns or Columns(), parsed.codec)
    with spark_progress(spark, reporter, "checking the rows"):
        found = {row[REASON]: row["count"] for row in reasons(rows).collect()}
    good = found.pop(None, 0)
    written = _set_aside(spark, rows, found, folder, reporter) if found else None
    with spark_progress(spark, reporter, f"offering {counted(good, 'row')}"):
        offered = offer(messages(rows), url=url, queue=queue, **options)
    if sum(offered) != good:
        raise InvalidArgument(
            "source",
            f"changed while it was read: {good:,} good rows were counted, but "
            f"{sum(offered):,} were offered; run the job again",
        )
    return Ingested(good + sum(found.values()), offered, found, written)


def _set_aside(
    spark: SparkSession,
    rows: DataFrame,
    found: dict[str, int],
    folder: Folder | None,
    progress: Progress,
) -> str:
    """Write the rows that cannot become messages to a new folder, and return its path."""
    bad = counted(sum(found.values()), "row")
    if folder is None:
        by_reason = "; ".join(f"{reason}: {count:,}" for reason, count in found.items())
        raise InvalidArgument(
            "source",
            f"has {bad} that cannot be offered ({by_reason}): correct the source, or "
            "give a folder for such rows with rejects=… or --rejects FOLDER",
        )
    started_at = SystemClock().now().astimezone(UTC)
    path = folder.of(f"{started_at:%Y%m%dT%H%M%S}-{uuid4().hex[:8]}")
    with spark_progress(spark, progress, f"setting {bad} aside"):
        rejected(rows).write.json(path)
    return path
