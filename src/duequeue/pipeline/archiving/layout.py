"""The layout of an archive's files, which lets readers skip most of their rows."""

from math import ceil

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from duequeue.pipeline.history_source import SETTLED
from duequeue.pipeline.timestamps import microseconds
from duequeue.port.history_table import DayBounds

# About how many rows a file has at most. More would make few large files, fewer many small ones.
FILE_ROWS = 1_000_000
# Readers skip whole row groups by their smallest and largest values. With Spark's default of
# 128 MB, most files would have only one.
GROUP_BYTES = 16 * 1024 * 1024


def arranged(rows: DataFrame, bounds: DayBounds) -> DataFrame:
    """Give each queue a few files, cut by id and so by time, and sort the rows of each file."""
    pieces = max(1, ceil(bounds.rows / FILE_ROWS))
    ids = bounds.last_id - bounds.first_id + 1
    piece = F.floor((F.col("id") - bounds.first_id) * pieces / ids)
    return rows.repartition("queue", piece).sortWithinPartitions("queue", "settled_at", "id")


def write_counted(rows: DataFrame, bounds: DayBounds, path: str) -> dict[str, int]:
    """Write Parquet files, and count the written rows by queue."""
    _write_files(arranged(rows, bounds), path)
    written = rows.sparkSession.read.schema(SETTLED).parquet(path)
    return {row["queue"]: row["count"] for row in written.groupBy("queue").count().collect()}


def _write_files(rows: DataFrame, path: str) -> None:
    """Write Parquet files by queue."""
    writer = rows.write.partitionBy("queue").option("compression", "zstd")
    with microseconds(rows.sparkSession):
        writer.option("parquet.block.size", GROUP_BYTES).parquet(path)
