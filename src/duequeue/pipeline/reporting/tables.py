"""The tables of a report, which are small enough for one machine, and their files."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import pyarrow as pa
from pyarrow import csv, parquet
from pyspark.sql import DataFrame

from duequeue.instants import from_millis
from duequeue.pipeline.history_source import queue_and_type
from duequeue.pipeline.reporting.frames import by_attempts, measured
from duequeue.port.history_table import BurialReason

_REASONS = pa.schema(
    [
        ("queue", pa.string()),
        ("reason", pa.string()),
        ("burials", pa.int64()),
        ("last_at", pa.timestamp("ms", "UTC")),
    ]
)


@dataclass(frozen=True)
class Tables:
    """The counts of a report, from the total to the parts."""

    total: pa.Table
    by_queue: pa.Table
    by_queue_and_time: pa.Table
    by_queue_and_attempts: pa.Table
    forecast: pa.Table
    burial_reasons: pa.Table

    @classmethod
    def of(
        cls, counted: DataFrame, expected: DataFrame, burials: Sequence[BurialReason]
    ) -> "Tables":
        """Let Spark count; the largest table has a row for each queue and step of time."""
        return cls(
            total=measured(counted).toArrow(),
            by_queue=measured(counted, "queue").orderBy("queue").toArrow(),
            by_queue_and_time=measured(counted, "queue", "at").orderBy("at", "queue").toArrow(),
            by_queue_and_attempts=by_attempts(counted).orderBy("queue", "attempts").toArrow(),
            forecast=expected.orderBy("at", "queue").toArrow(),
            burial_reasons=_reasons(burials),
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
                named = [_with_unit(name) for name in table.column_names]
                csv.write_csv(table.rename_columns(named), file)
        return names


def _with_unit(column: str) -> str:
    """Name the unit of a column, which a CSV file cannot express otherwise."""
    if column.startswith(("late_", "handling_")):
        return f"{column}_ms"
    return f"{column}_utc" if column in {"at", "last_at"} else column


def _reasons(burials: Sequence[BurialReason]) -> pa.Table:
    rows = [
        (*queue_and_type(kind)[:1], reason, number, from_millis(last_at))
        for kind, reason, number, last_at in burials
    ]
    columns = zip(*rows, strict=True) if rows else [()] * len(_REASONS)
    return pa.table([list(column) for column in columns], schema=_REASONS)
