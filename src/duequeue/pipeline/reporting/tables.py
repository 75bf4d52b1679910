"""The tables of a report, which are small enough for one machine, and their files."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path

import pyarrow as pa
from pyarrow import csv, parquet
from pyspark.sql import DataFrame

from duequeue.instants import from_millis
from duequeue.pipeline.history_source import queue_and_type
from duequeue.pipeline.reporting.frames import by_attempts, measured
from duequeue.port.history_table import BurialReason, ScheduledHour

_FORECAST = pa.schema(
    [
        ("queue", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
        ("messages", pa.int64()),
        ("overdue", pa.int64()),
    ]
)
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
        cls,
        counted: DataFrame,
        scheduled: Sequence[ScheduledHour],
        burials: Sequence[BurialReason],
    ) -> "Tables":
        """Let Spark count; the largest table has a row for each queue and step of time."""
        return cls(
            total=measured(counted).toArrow(),
            by_queue=measured(counted, "queue").orderBy("queue").toArrow(),
            by_queue_and_time=measured(counted, "queue", "at").orderBy("at", "queue").toArrow(),
            by_queue_and_attempts=by_attempts(counted).orderBy("queue", "attempts").toArrow(),
            forecast=_forecast(scheduled),
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
    return _table(rows, _REASONS)


def _forecast(scheduled: Sequence[ScheduledHour]) -> pa.Table:
    """Add up the kinds of a queue, which differ in their payload types."""
    counts: dict[tuple[datetime, str], list[int]] = {}
    for kind, begins_at, messages, overdue in scheduled:
        queue, _ = queue_and_type(kind)
        sums = counts.setdefault((from_millis(begins_at), queue), [0, 0])
        sums[0] += messages
        sums[1] += overdue
    return _table([(queue, at, *sums) for (at, queue), sums in sorted(counts.items())], _FORECAST)


def _table(rows: Sequence[tuple[object, ...]], schema: pa.Schema) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    return pa.table([list(column) for column in columns], schema=schema)
