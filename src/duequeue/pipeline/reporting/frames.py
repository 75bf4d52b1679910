"""The counts of a report, as pure functions from DataFrames to DataFrames.

Durations are in milliseconds. `at` is the start of an hour, or of another step of time, in UTC.
"""

from datetime import datetime, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
OUTCOMES = ("acked", "buried", "expired", "dropped", "replaced")
HOUR = timedelta(hours=1)
AHEAD_HOURS = 24


def facts(settled: DataFrame) -> DataFrame:
    """Return the facts of each settled message that the report counts.

    Only messages settled at their first attempt have a lateness, because the history does not
    record when a first attempt came if there was a second one.
    """
    due, delivered = (F.unix_millis(name) for name in ("due_at", "delivered_at"))
    return settled.select(
        "queue",
        "settled_at",
        "outcome",
        "attempts",
        F.when(F.col("attempts") == 1, delivered - due).alias("late"),
        F.when(F.col("outcome") == "acked", F.col("handler_ms")).alias("handling"),
    )


def span_of(settled: DataFrame) -> timedelta:
    """Return the time between the first and the last settled message."""
    at = F.unix_millis("settled_at")
    (found,) = settled.agg((F.max(at) - F.min(at)).alias("span")).collect()
    return timedelta(milliseconds=found["span"] or 0)


def in_steps(counted: DataFrame, step: timedelta) -> DataFrame:
    """Add to each fact the start of the step of time in which its message was settled."""
    return counted.withColumn("at", _start_of(F.col("settled_at"), step))


def measured(counted: DataFrame, *by: str) -> DataFrame:
    """Sum up the facts, grouped by these columns if there are any."""
    return counted.groupBy(*by).agg(
        F.count("*").alias("settled"),
        *(F.count_if(F.col("outcome") == outcome).alias(outcome) for outcome in OUTCOMES),
        F.count_if(F.col("attempts") > 0).alias("delivered"),
        F.count_if(F.col("attempts") > 1).alias("redelivered"),
        F.coalesce(F.sum(_redeliveries()), F.lit(0)).alias("redeliveries"),
        *_percentiles("late"),
        *_percentiles("handling"),
    )


def by_attempts(counted: DataFrame) -> DataFrame:
    """Count the messages that were delivered by the number of their attempts."""
    delivered = counted.where("attempts > 0")
    return delivered.groupBy("queue", "attempts").agg(F.count("*").alias("messages"))


def start_of(instant: datetime, step: timedelta) -> datetime:
    """Return the start of the step that an instant is in."""
    seconds = int(step.total_seconds())
    return datetime.fromtimestamp(int(instant.timestamp()) // seconds * seconds, instant.tzinfo)


def _redeliveries() -> Column:
    return F.greatest(F.col("attempts") - 1, F.lit(0))


def _start_of(instant: Column, step: timedelta) -> Column:
    # Not date_trunc, because that uses the session's time zone.
    seconds = int(step.total_seconds())
    return F.timestamp_seconds(F.floor(F.unix_seconds(instant) / seconds) * seconds)


def _percentiles(name: str) -> list[Column]:
    found = F.percentile_approx(name, list(PERCENTILES.values()))
    return [
        *(found[place].alias(f"{name}_{label}") for place, label in enumerate(PERCENTILES)),
        F.max(name).alias(f"{name}_max"),
    ]
