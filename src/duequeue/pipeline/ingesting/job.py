"""`ingest`: rows become messages; those that cannot are set aside, with the reason."""

from collections.abc import Mapping
from datetime import UTC
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession

from duequeue.clock import SystemClock
from duequeue.connect import absolute
from duequeue.pipeline.folder import Folder
from duequeue.pipeline.ingesting.frames import (
    REASON,
    Columns,
    messages,
    reasons,
    rejected,
    screened,
)
from duequeue.pipeline.ingesting.sources import read_source
from duequeue.pipeline.progress import Progress, Silence, following
from duequeue.port.bulk import OfferCounts
from duequeue.spark.offering import offer
from duequeue.spark.open_bulk import OpenBulk
from duequeue.spark.options import parse


class Ingested(NamedTuple):
    """What became of the rows: offered, or rejected for some reason and written to a folder."""

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
    """Offer every row that can be a message, and write the others to a new folder in `rejects`.

    Without that, a single bad row is an error, and nothing is offered. Run twice, it finds its
    messages there and leaves them alone, but for those whose rows have changed since.
    """
    url, told = absolute(url), progress or Silence()
    parsed = parse({**options, "url": url, "queue": queue})
    OpenBulk(parsed).close()  # a database that cannot be reached is told of at once
    frame = (
        source
        if isinstance(source, DataFrame)
        else read_source(spark, source, form, reader_options or {})
    )
    rows = screened(frame, columns or Columns(), parsed.codec)
    with following(spark, told, "checking the rows"):
        found = {row[REASON]: row["count"] for row in reasons(rows).collect()}
    good = found.pop(None, 0)
    folder = _set_aside(spark, rows, found, rejects, told) if found else None
    with following(spark, told, f"offering {good:,} rows"):
        offered = offer(messages(rows), url=url, queue=queue, **options)
    if sum(offered) != good:
        raise ValueError(
            f"source has changed while it was read: {good} good rows were counted, and "
            f"{sum(offered)} offered; run it again"
        )
    return Ingested(good + sum(found.values()), offered, found, folder)


def _set_aside(
    spark: SparkSession,
    rows: DataFrame,
    found: dict[str, int],
    rejects: str | Path | None,
    progress: Progress,
) -> str:
    bad = sum(found.values())
    if rejects is None:
        told = "; ".join(f"{reason}: {count:,}" for reason, count in found.items())
        raise ValueError(
            f"source has {bad:,} rows that cannot be messages ({told}): mend them, or name a "
            "folder for them: rejects=…, or --rejects FOLDER"
        )
    begun = SystemClock().now().astimezone(UTC)
    folder = Folder(spark, rejects).of(f"{begun:%Y%m%dT%H%M%S}-{uuid4().hex[:8]}")
    with following(spark, progress, f"setting {bad:,} rows aside"):
        rejected(rows).write.json(folder)
    return folder
