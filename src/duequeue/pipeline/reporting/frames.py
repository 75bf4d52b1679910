"""What a report counts: pure functions from DataFrames to DataFrames.

Spans are in milliseconds. `at` is the beginning of an hour, or of another step of time, in UTC.
"""

from datetime import datetime, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - so it is written everywhere

PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
OUTCOMES = ("acked", "buried", "dropped", "replaced")
HOUR = timedelta(hours=1)
AHEAD_HOURS = 24


def facts(settled: DataFrame, step: timedelta) -> DataFrame:
    """Return what is counted of each settled message.

    Lateness is that of messages settled at their first attempt: of a later one, nobody knows how
    late the first was.
    """
    due, delivered, done = (
        F.unix_millis(name) for name in ("due_at", "delivered_at", "settled_at")
    )
    return settled.select(
        "queue",
        _beginning(F.col("settled_at"), step).alias("at"),
        "outcome",
        "attempts",
        F.when(F.col("attempts") == 1, delivered - due).alias("late"),
        F.when(F.col("outcome") == "acked", done - delivered).alias("handling"),
    )


def measured(counted: DataFrame, *by: str) -> DataFrame:
    """Sum facts up by these columns, or all of them."""
    return counted.groupBy(*by).agg(
        F.count("*").alias("settled"),
        *(F.count_if(F.col("outcome") == outcome).alias(outcome) for outcome in OUTCOMES),
        F.count_if(F.col("attempts") > 0).alias("delivered"),
        F.count_if(F.col("attempts") > 1).alias("redelivered"),
        F.coalesce(F.sum(_redeliveries()), F.lit(0)).alias("redeliveries"),
        *_spread("late"),
        *_spread("handling"),
    )


def by_attempts(counted: DataFrame) -> DataFrame:
    """Count messages by how many attempts they took, of those that were delivered at all."""
    delivered = counted.where("attempts > 0")
    return delivered.groupBy("queue", "attempts").agg(F.count("*").alias("messages"))


def forecast(scheduled: DataFrame, now: datetime) -> DataFrame:
    """Count what falls due in each of the next hours; what is overdue is due in the first.

    `scheduled` has a queue and an instant, `deliver_at`, for each message.
    """
    present = F.lit(now)
    due = F.greatest("deliver_at", present)
    end = F.lit(now + AHEAD_HOURS * HOUR)
    return (
        scheduled.where(F.col("deliver_at") < end)
        .groupBy("queue", _beginning(due, HOUR).alias("at"))
        .agg(
            F.count("*").alias("messages"),
            F.count_if(F.col("deliver_at") <= present).alias("overdue"),
        )
    )


def start_of(instant: datetime, step: timedelta) -> datetime:
    """Return the beginning of the step in which an instant lies."""
    seconds = int(step.total_seconds())
    return datetime.fromtimestamp(int(instant.timestamp()) // seconds * seconds, instant.tzinfo)


def _redeliveries() -> Column:
    return F.greatest(F.col("attempts") - 1, F.lit(0))


def _beginning(instant: Column, step: timedelta) -> Column:
    # Not date_trunc, which has the session's zone in mind.
    seconds = int(step.total_seconds())
    return F.timestamp_seconds(F.floor(F.unix_seconds(instant) / seconds) * seconds)


def _spread(name: str) -> list[Column]:
    found = F.percentile_approx(name, list(PERCENTILES.values()))
    return [
        *(found[place].alias(f"{name}_{label}") for place, label in enumerate(PERCENTILES)),
        F.max(name).alias(f"{name}_max"),
    ]
