"""The tables of a report, which are small enough for one machine, and their files."""

from dataclasses import dataclass, fields
from pathlib import Path

import pyarrow as pa
from pyarrow import csv, parquet
from pyspark.sql import DataFrame

from duequeue.pipeline.reporting.frames import by_attempts, measured


@dataclass(frozen=True)
class Tables:
    """The counts of a report, from the total to the parts."""

    total: pa.Table
    by_queue: pa.Table
    by_queue_and_time: pa.Table
    by_queue_and_attempts: pa.Table
    forecast: pa.Table

    @classmethod
    def of(cls, counted: DataFrame, expected: DataFrame) -> "Tables":
        """Let Spark count; the largest table has a row for each queue and step of time."""
        return cls(
            total=measured(counted).toArrow(),
            by_queue=measured(counted, "queue").orderBy("queue").toArrow(),
            by_queue_and_time=measured(counted, "queue", "at").orderBy("at", "queue").toArrow(),
            by_queue_and_attempts=by_attempts(counted).orderBy("queue", "attempts").toArrow(),
            forecast=expected.orderBy("at", "queue").toArrow(),
        )

    def write(self, folder: Path) -> list[str]:
        """Write each table as Parquet and as CSV, and return their names."""
        folder.mkdir(parents=True, exist_ok=True)
        names = [field.name for field in fields(self)]
        for name in names:
            table: pa.Table = getattr(self, name)
            # The files are opened here, because Arrow would take a path with a colon for a URL.
            with (folder / f"{name}.parquet").open("wb") as file:
                parquet.write_table(table, file)
            with (folder / f"{name}.csv").open("wb") as file:
                csv.write_csv(table, file)
        return names
