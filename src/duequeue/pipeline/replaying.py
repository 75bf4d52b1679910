"""`replay` offers archived messages again, filtered and at new times."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from duequeue.backends import absolute
from duequeue.bulk.port import OfferCounts
from duequeue.errors import InvalidArgument
from duequeue.pipeline.folder import Folder
from duequeue.pipeline.history_frames import MANIFESTS, archived_rows, day_folder, days_of
from duequeue.pipeline.progress import NoProgress, Progress, spark_progress
from duequeue.spark.offering import offer
from duequeue.spark.open_bulk import FIRST_CONTACT, OpenBulk
from duequeue.spark.options import parse


class Replayed(NamedTuple):
    """How many messages were created, updated and ignored."""

    offered: OfferCounts


def replay(
    spark: SparkSession,
    archive: DataFrame | str | Path,
    *,
    url: str,
    queue: str,
    where: str = "true",
    due: str = "current_timestamp()",
    payload: str = "payload",
    progress: Progress | None = None,
    mode: str = "ignore",
    **options: Any,
) -> Replayed:
    """Offer the messages of a Parquet archive again.

    `where`, `due` and `payload` are SQL expressions over its columns. A key that is already in the
    queue is left alone unless `mode` is upsert, so a second run changes nothing. If a key is
    archived more than once, the message with the last due time is offered.
    """
    url, given = absolute(url), {**options, "mode": mode}
    OpenBulk(parse({**given, "url": url, "queue": queue}), FIRST_CONTACT).close()
    with rows_of(spark, archive) as frame:
        messages = replayable(frame, where, due, payload)
        with spark_progress(spark, progress or NoProgress(), f"replaying into {queue}"):
            return Replayed(offer(messages, url=url, queue=queue, **given))


def replayable(frame: DataFrame, where: str, due: str, payload: str) -> DataFrame:
    """Return the messages to offer: one for each key, at its new time."""
    if payload == "payload" and "payload" not in frame.columns:
        raise InvalidArgument(
            "archive",
            "has no column 'payload', because a history keeps no payloads: give payload as "
            f"an SQL expression over its columns, which are: {', '.join(frame.columns)}",
        )
    chosen = frame.where(_expression("where", where, frame))
    headers = ["headers"] if "headers" in frame.columns else []
    newest = [name for name in ("due_at", "settled_at") if name in frame.columns]
    order = [F.col(name).desc_nulls_last() for name in newest] or [F.lit(1)]
    last = Window.partitionBy("key").orderBy(*order)
    return (
        chosen.withColumn("_nth", F.row_number().over(last))
        .where("_nth = 1")
        .select(
            "key",
            _expression("payload", payload, frame).alias("payload"),
            _expression("due", due, frame).cast("timestamp").alias("due_at"),
            *headers,
        )
    )


@contextmanager
def rows_of(spark: SparkSession, archive: DataFrame | str | Path) -> Iterator[DataFrame]:
    """Yield the rows of an archive, whose files are not replaced or removed during the block."""
    if isinstance(archive, DataFrame):
        yield archive
        return
    folder = Folder(spark, archive, "archive")
    if _is_ours(folder):
        with folder.being_read():
            yield archived_rows(spark, folder, date.min, date.max)
    else:
        yield _read(spark, folder)


def _is_ours(folder: Folder) -> bool:
    """Return whether `archive` has written a folder, and not another program."""
    try:
        days = map(day_folder, days_of(folder))
        return any(name.startswith(MANIFESTS) for day in days for name in folder.names(day))
    except ValueError:
        return False  # a client of Spark Connect may read what only its server can reach


def _read(spark: SparkSession, folder: Folder) -> DataFrame:
    try:
        return spark.read.parquet(folder.path)
    except AnalysisException as error:
        if error.getCondition() in {"PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA"}:
            raise InvalidArgument(
                "archive", f"{folder.path!r} does not exist, or contains no Parquet files"
            ) from None
        raise


def _expression(argument: str, text: str, frame: DataFrame) -> Column:
    """Check an expression by itself, so that the error names it."""
    column = F.expr(text)
    try:
        frame.select(column)
    except AnalysisException as error:
        reason = str(error).partition(". SQLSTATE")[0]
        raise InvalidArgument(
            argument, f"is not valid SQL over the archive's columns: {reason}"
        ) from None
    return column
