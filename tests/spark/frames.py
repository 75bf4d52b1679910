"""DataFrames to offer, and what they say."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession

PAST = datetime(2020, 1, 1, tzinfo=UTC)
FUTURE = datetime(2100, 1, 1, tzinfo=UTC)

SCHEMA = "key string, payload string, due_at timestamp"


def rows(spark: SparkSession, values: list[Any], schema: str = SCHEMA) -> DataFrame:
    """A DataFrame of these rows, in one partition: in this order."""
    return spark.createDataFrame(values, schema).coalesce(1)


def messages(spark: SparkSession, count: int, due: str = "timestamp'2020-01-01'") -> DataFrame:
    """As many messages with the keys k0, k1, …"""
    return spark.range(count).selectExpr(
        "concat('k', id) AS key", "to_json(struct(id AS n)) AS payload", f"{due} AS due_at"
    )


def later(seconds: float) -> datetime:
    return PAST + timedelta(seconds=seconds)


@contextmanager
def session_in(spark: SparkSession, zone: str) -> Iterator[None]:
    """Have the session show its instants in another zone."""
    before = str(spark.conf.get("spark.sql.session.timeZone"))
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        yield
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
