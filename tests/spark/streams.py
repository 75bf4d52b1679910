"""Streaming queries from a queue, into files and into memory."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tests.race.together import PATIENCE


def stream(spark: SparkSession, url: str, schema: str | None = None, **options: str) -> DataFrame:
    """A streaming DataFrame of the queue."""
    given = {"url": url, "queue": "orders", "numPartitions": "2", **options}
    reader = spark.readStream.format("duequeue").options(**given)
    return (reader.schema(schema) if schema else reader).load()


def to_files(frame: DataFrame, folder: Path) -> DataStreamWriter:
    """A file sink, with its checkpoint beside it."""
    return (
        frame.writeStream.format("parquet")
        .option("path", str(folder / "out"))
        .option("checkpointLocation", str(folder / "checkpoint"))
    )


def to_function(
    frame: DataFrame, folder: Path, handle: Callable[[DataFrame, int], None]
) -> DataStreamWriter:
    """A function called with each micro-batch, which is read as a whole before that."""

    def read_and_handle(rows: DataFrame, number: int) -> None:
        rows.write.format("noop").mode("append").save()
        handle(rows, number)

    return frame.writeStream.foreachBatch(read_and_handle).option(
        "checkpointLocation", str(folder / "checkpoint")
    )


def run_through(writer: DataStreamWriter) -> StreamingQuery:
    """Handle all that is due, and end."""
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(int(PATIENCE)), "still running"
    return query


def in_files(spark: SparkSession, folder: Path) -> list[Any]:
    """The keys that a file sink has, as often as it has them."""
    found = spark.read.schema("key string").parquet(str(folder / "out")).collect()
    return sorted(row.key for row in found)
