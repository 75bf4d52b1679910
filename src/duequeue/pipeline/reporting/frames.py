"""The counts of a report, as pure functions from DataFrames to DataFrames.

Durations are in milliseconds. `at` is the start of an hour, or of another step of time, in UTC.
"""

from datetime import datetime, timedelta
from itertools import chain

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

# In whole percents, because a fraction times a count may be a little more than the rank it means.
PERCENTILES = {"p50": 50, "p90": 90, "p99": 99}
SPANS = ("late", "handling")
OUTCOMES = ("acked", "buried", "expired", "dropped", "replaced")
# Spans of time keep this many digits, so that even many messages have few different ones.
DIGITS = 4
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


def counts(stepped: DataFrame) -> DataFrame:
    """Count the messages of each queue and step by outcome, by lateness and by handler time.

    One pass makes all three counts. A row has values in the columns by which it was counted, and
    nulls in the others, so the rows that have an outcome are those by outcome. All that a report
    shows comes from these rows.
    """
    rounded = stepped.select("*", *(_rounded(name).alias(f"{name}_about") for name in SPANS))
    columns = [["outcome", "attempts"], ["late_about"], ["handling_about"]]
    sets = [["queue", "at", *each] for each in columns]
    return rounded.groupingSets(sets, "queue", "at", *chain.from_iterable(columns)).agg(
        F.count("*").alias("messages"), *(F.max(name).alias(f"{name}_max") for name in SPANS)
    )


def measured(counted: DataFrame, *by: str) -> DataFrame:
    """Sum up the counts, grouped by these columns if there are any."""
    grouped = _ranked(counted, *by).groupBy(*by)
    return grouped.agg(
        _sum_if(F.col("outcome").isNotNull()).alias("settled"),
        *(_sum_if(F.col("outcome") == outcome).alias(outcome) for outcome in OUTCOMES),
        _sum_if(F.col("attempts") > 0).alias("delivered"),
        _sum_if(F.col("attempts") > 1).alias("redelivered"),
        _sum_if(F.col("attempts") > 1, F.col("attempts") - 1).alias("redeliveries"),
        *chain.from_iterable(_percentiles(name) for name in SPANS),
    )


def by_attempts(counted: DataFrame) -> DataFrame:
    """Count the messages that were delivered by the number of their attempts."""
    delivered = counted.where("attempts > 0")
    return delivered.groupBy("queue", "attempts").agg(F.sum("messages").alias("messages"))


def start_of(instant: datetime, step: timedelta) -> datetime:
    """Return the start of the step that an instant is in."""
    seconds = int(step.total_seconds())
    return datetime.fromtimestamp(int(instant.timestamp()) // seconds * seconds, instant.tzinfo)


def _sum_if(condition: Column, times: Column | None = None) -> Column:
    """Add up the messages of the rows that meet a condition."""
    messages = F.col("messages") if times is None else F.col("messages") * times
    return F.coalesce(F.sum(F.when(condition, messages)), F.lit(0))


def _rounded(name: str) -> Column:
    """Round a span down to its first digits, so that no percentile exceeds the maximum."""
    value = F.col(name)
    unit = F.pow(F.lit(10), F.floor(F.log10(F.abs(value))) - (DIGITS - 1))
    few = F.abs(value) < 10**DIGITS
    return F.when(few, value).otherwise((F.floor(value / unit) * unit).cast("bigint"))


def _start_of(instant: Column, step: timedelta) -> Column:
    # Not date_trunc, because that uses the session's time zone.
    seconds = int(step.total_seconds())
    return F.timestamp_seconds(F.floor(F.unix_seconds(instant) / seconds) * seconds)


def _ranked(counted: DataFrame, *by: str) -> DataFrame:
    """Name the span that a row is about, if any, and add its rank and how many spans there are.

    The rank is the number of messages in the group whose span is at most as long.
    """
    about = {name: F.col(f"{name}_about") for name in SPANS}
    named = counted.withColumns(
        {
            "span": F.coalesce(*(F.when(about[name].isNotNull(), F.lit(name)) for name in SPANS)),
            "about": F.coalesce(*about.values()),
        }
    )
    # Summed up before they are sorted, because all rows of a group are sorted in one task.
    summed = named.groupBy(*by, "outcome", "attempts", "span", "about").agg(
        F.sum("messages").alias("messages"),
        *(F.max(f"{name}_max").alias(f"{name}_max") for name in SPANS),
    )
    group, messages = Window.partitionBy(*by, "span"), F.sum("messages")
    return summed.withColumns(
        {"rank": messages.over(group.orderBy("about")), "ranks": messages.over(group)}
    )


def _percentiles(name: str) -> list[Column]:
    """Return the shortest spans that enough messages do not exceed, and the longest one."""
    return [
        *(
            F.min(F.when(_reaches(name, percent), F.col("about"))).alias(f"{name}_{label}")
            for label, percent in PERCENTILES.items()
        ),
        F.max(f"{name}_max").alias(f"{name}_max"),
    ]


def _reaches(name: str, percent: int) -> Column:
    return (F.col("span") == name) & (F.col("rank") * 100 >= F.col("ranks") * percent)
