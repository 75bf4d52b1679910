"""What a report counts, as values."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from duequeue import ScheduledHour
from duequeue.pipeline.reporting.frames import (
    HOUR,
    PERCENTILES,
    SPANS,
    by_attempts,
    counts,
    facts,
    in_steps,
    measured,
    start_of,
)
from duequeue.pipeline.reporting.tables import Tables

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
SCHEMA = (
    "queue string, due_at timestamp, delivered_at timestamp, settled_at timestamp, "
    "attempts int, outcome string, handler_ms bigint"
)


def settled(
    queue: str = "orders",
    *,
    late: int | None = 0,
    handling: int | None = 0,
    attempts: int = 1,
    outcome: str = "acked",
    at: datetime = NOON,
    waited: timedelta = timedelta(0),
) -> tuple[Any, ...]:
    """A message that was due at that instant, with its spans in milliseconds.

    After its handler has ended, it waits for the ack of its batch.
    """
    delivered = None if late is None else at + timedelta(milliseconds=late)
    done = (delivered or at) + timedelta(milliseconds=handling or 0) + waited
    return (queue, at, delivered, done, attempts, outcome, handling)


@pytest.fixture
def counted(spark: SparkSession) -> DataFrame:
    """Two queues, two hours, every outcome."""
    rows = [
        *(settled(late=number, handling=2 * number, waited=HOUR / 2) for number in range(1, 101)),
        settled(late=5000, attempts=3),
        settled(late=9000, attempts=2, outcome="buried"),
        settled(late=None, attempts=0, outcome="dropped"),
        settled(late=None, attempts=0, outcome="expired"),
        settled(late=None, attempts=1, outcome="replaced", at=NOON + HOUR),
        settled("invoices", late=7, handling=0),
        settled("invoices", late=7, handling=None),
    ]
    return counts(in_steps(facts(spark.createDataFrame(rows, SCHEMA)), HOUR))


def found(frame: DataFrame, *order: str) -> list[dict[str, Any]]:
    ordered = frame.orderBy(*order) if order else frame
    rows: list[dict[str, Any]] = ordered.toArrow().to_pylist()
    return rows


def test_a_queue_in_numbers(counted: DataFrame) -> None:
    invoices, orders = found(measured(counted, "queue"), "queue")
    assert orders == {
        "queue": "orders",
        "settled": 105,
        "acked": 101,
        "buried": 1,
        "expired": 1,
        "dropped": 1,
        "replaced": 1,
        "delivered": 103,
        "redelivered": 2,
        "redeliveries": 3,
        "late_p50": 50,
        "late_p90": 90,
        "late_p99": 99,
        "late_max": 100,
        "handling_p50": 100,
        "handling_p90": 180,
        "handling_p99": 198,
        "handling_max": 200,
    }
    assert (invoices["settled"], invoices["late_max"], invoices["handling_max"]) == (2, 7, 0)


def test_hours_are_told_apart(counted: DataFrame) -> None:
    rows = found(measured(counted, "queue", "at"), "at", "queue")
    assert [(row["at"], row["queue"], row["settled"]) for row in rows] == [
        (NOON, "invoices", 2),
        (NOON, "orders", 104),
        (NOON + HOUR, "orders", 1),
    ]
    assert rows[2]["late_max"] is None


def test_the_whole(counted: DataFrame) -> None:
    (total,) = found(measured(counted))
    assert (total["settled"], total["redeliveries"]) == (107, 3)


def test_nothing_at_all(counted: DataFrame) -> None:
    (total,) = found(measured(counted.where("false")))
    assert (total["settled"], total["redeliveries"], total["late_p50"]) == (0, 0, None)
    assert found(by_attempts(counted.where("false"))) == []


def test_long_spans_have_four_digits_and_the_longest_has_all(spark: SparkSession) -> None:
    rows = [settled(late=late, handling=None) for late in (9_999, 12_345, 98_765_432, 99_999_999)]
    frame = counts(in_steps(facts(spark.createDataFrame(rows, SCHEMA)), HOUR))
    (total,) = found(measured(frame))
    values = sorted(row["late_about"] for row in found(frame) if row["late_about"] is not None)
    assert values == [9_999, 12_340, 98_760_000, 99_990_000]
    assert (total["settled"], total["late_max"]) == (4, 99_999_999)
    assert [total[f"late_{label}"] for label in PERCENTILES] == [12_340, 99_990_000, 99_990_000]


def test_a_percentile_of_few_messages_is_a_value_that_one_of_them_had(spark: SparkSession) -> None:
    rows = [
        settled("two", late=0, handling=1),
        settled("two", late=100_000, handling=70),
        *(settled("ten", late=late, handling=None) for late in range(10, 0, -1)),
        settled("hours", late=30, handling=None),
        settled("hours", late=20, handling=None, at=NOON + HOUR),
        settled("hours", late=20, handling=None, at=NOON + 2 * HOUR),
        settled("early", late=-5, handling=None),
    ]
    frame = counts(in_steps(facts(spark.createDataFrame(rows, SCHEMA)), HOUR))
    names = [f"{span}_{label}" for span in SPANS for label in PERCENTILES]
    values = {
        row["queue"]: [row[name] for name in names] for row in found(measured(frame, "queue"))
    }
    assert values == {
        "two": [0, 100_000, 100_000, 1, 70, 70],
        "ten": [5, 9, 10, None, None, None],
        "hours": [20, 30, 30, None, None, None],
        "early": [-5, -5, -5, None, None, None],
    }
    (total,) = found(measured(frame))
    assert [total[name] for name in names] == [6, 30, 100_000, 1, 70, 70]


def test_percentiles_are_nearest_ranks_in_groups_of_any_size(spark: SparkSession) -> None:
    spans = {size: [7 * place % 211 for place in range(size)] for size in range(1, 211)}
    rows = [settled(f"{size}", late=late) for size, lates in spans.items() for late in lates]
    frame = counts(in_steps(facts(spark.createDataFrame(rows, SCHEMA)), HOUR))
    for row in found(measured(frame, "queue")):
        lates = sorted(spans[int(row["queue"])])
        for label, percent in PERCENTILES.items():
            rank = -(-len(lates) * percent // 100)
            assert row[f"late_{label}"] == lates[rank - 1], (row["queue"], label)


def test_attempts(counted: DataFrame) -> None:
    rows = found(by_attempts(counted.where("queue = 'orders'")), "attempts")
    assert [(row["attempts"], row["messages"]) for row in rows] == [(1, 101), (2, 1), (3, 1)]


def test_steps_begin_in_utc_whatever_the_session_thinks(spark: SparkSession) -> None:
    late = datetime(2026, 3, 1, 23, 59, 59, 999_000, tzinfo=UTC)
    early = datetime(1969, 12, 31, 23, 59, 30, tzinfo=UTC)
    frame = spark.createDataFrame([settled(at=late), settled(at=early)], SCHEMA)
    zone = spark.conf.get("spark.sql.session.timeZone")
    assert zone is not None
    spark.conf.set("spark.sql.session.timeZone", "Asia/Kathmandu")
    try:
        rows = found(in_steps(facts(frame), HOUR).select("at"), "at")
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    assert [row["at"].astimezone(UTC) for row in rows] == [
        datetime(1969, 12, 31, 23, tzinfo=UTC),
        datetime(2026, 3, 1, 23, tzinfo=UTC),
    ]


@pytest.mark.parametrize("seconds", [1, 60, 3600])
def test_the_beginning_of_a_step(seconds: int) -> None:
    step = timedelta(seconds=seconds)
    assert start_of(NOON, step) == NOON
    assert start_of(NOON + step - timedelta(microseconds=1), step) == NOON
    assert start_of(NOON - timedelta(microseconds=1), step) == NOON - step


def test_kinds_of_one_queue_are_added_up(counted: DataFrame) -> None:
    hour = round(NOON.timestamp() * 1000)
    scheduled = [
        ScheduledHour("orders|json", hour, 3, 2),
        ScheduledHour("orders|text", hour, 4, 1),
        ScheduledHour("invoices|json", hour, 1, 0),
    ]
    assert Tables.of(counted, scheduled, []).forecast.to_pylist() == [
        {"queue": "invoices", "at": NOON, "messages": 1, "overdue": 0},
        {"queue": "orders", "at": NOON, "messages": 7, "overdue": 3},
    ]
