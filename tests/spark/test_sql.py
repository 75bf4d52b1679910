"""Queues in Spark's SQL work as temporary views, and not as tables."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from duequeue import Queue

ADVICE = "CREATE TEMPORARY VIEW … USING duequeue OPTIONS"
OPTIONS = "USING duequeue OPTIONS (url '{url}', queue 'orders')"
ROW = "('a', '1', timestamp'2020-01-01')"


@pytest.fixture
def sql(spark: SparkSession, url: str) -> Iterator[Callable[[str], DataFrame]]:
    """Run SQL, in which {using} names the queue and {row} is a message; drop what it creates."""
    using = OPTIONS.format(url=url)
    yield lambda text: spark.sql(text.replace("{using}", using).replace("{row}", ROW))
    spark.sql("DROP VIEW IF EXISTS messages")
    spark.sql("DROP TABLE IF EXISTS stored")


def test_select_and_insert(sql: Callable[[str], DataFrame], queue: Queue[Any]) -> None:
    sql("CREATE TEMPORARY VIEW messages {using}")
    sql("INSERT INTO messages (key, payload, due_at) VALUES {row}")
    delivery = queue.try_poll()
    assert delivery is not None
    assert (delivery.key, delivery.payload) == ("a", 1)
    (row,) = sql("SELECT key, attempt FROM messages WHERE due_at < now()").collect()
    assert tuple(row) == ("a", 1)


def test_a_view_with_its_own_columns(sql: Callable[[str], DataFrame], queue: Queue[Any]) -> None:
    sql("CREATE TEMPORARY VIEW messages (key string, payload string, due_at timestamp) {using}")
    sql("INSERT INTO messages VALUES {row}")
    sql("INSERT INTO messages SELECT 'b', payload, due_at FROM messages")
    assert queue.contains("b")


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_an_insert_must_not_fill_read_only_columns(sql: Callable[[str], DataFrame]) -> None:
    sql("CREATE TEMPORARY VIEW messages {using}")
    insert = "INSERT INTO messages (key, payload, due_at, attempt) VALUES ('a', '1', now(), 7)"
    with pytest.raises(PySparkException, match="column 'attempt' cannot be written"):
        sql(insert)


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_a_table_fails_and_says_what_to_do(sql: Callable[[str], DataFrame]) -> None:
    with pytest.raises(PySparkException, match=ADVICE):
        sql("CREATE TABLE stored {using}")
    sql("CREATE TABLE stored (key string, payload string, due_at timestamp) {using}")
    with pytest.raises(PySparkException, match=ADVICE):
        sql("SELECT key FROM stored").collect()
    with pytest.raises(PySparkException, match=ADVICE):
        sql("INSERT INTO stored VALUES {row}")


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_a_saved_table_can_be_read_with_its_options(
    spark: SparkSession, sql: Callable[[str], DataFrame], url: str, queue: Queue[Any]
) -> None:
    given = {"url": url, "queue": "orders"}
    frame = spark.sql("SELECT 'a' AS key, '1' AS payload, timestamp'2020-01-01' AS due_at")
    frame.write.format("duequeue").options(**given).mode("append").saveAsTable("stored")
    assert [row.key for row in spark.read.options(**given).table("stored").collect()] == ["a"]
    with pytest.raises(PySparkException, match=r"spark\.read\.options\(url=…, queue=…\)\.table"):
        sql("SELECT key FROM stored").collect()
    sql("DROP TABLE stored")
    assert queue.contains("a")
