"""Filters of a query that the database applies, so that few messages leave it."""

import re
import sqlite3
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    StringContains,
    StringStartsWith,
)

from duequeue import Message, Queue
from duequeue.bulk.port import Conditions, SnapshotQuery
from duequeue.bulk.postgres_snapshots import USE_AN_INDEX
from duequeue.spark.open_bulk import OpenBulk
from duequeue.spark.options import parse
from duequeue.spark.pushed_filters import push
from duequeue.stores.sql.postgres.statements import queries
from duequeue.stores.sql.sqlite.session import QUERIES
from tests.fixtures.stores import on_redis_too
from tests.spark.frames import FUTURE, PAST
from tests.sql.explaining import STATISTICS

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


@pytest.fixture
def options(url: str, queue: Queue[Any]) -> dict[str, str]:
    """Nine messages that are due on different days, one of them leased."""
    days = (FUTURE + timedelta(days=number) for number in range(8))
    queue.offer_batch(Message(f"k{number}", number, day) for number, day in enumerate(days))
    queue.offer("leased", 1, PAST)
    assert queue.try_poll() is not None
    return {"url": url, "queue": "orders"}


KEY, DUE, DELIVER, LEASED = ("key",), ("due_at",), ("deliver_at",), ("leased_until",)
SIXTH = FUTURE + timedelta(days=5)
BIT = timedelta(microseconds=1)


@on_redis_too
@pytest.mark.parametrize(
    ("filters", "keys"),
    [
        ([EqualTo(KEY, "k3")], "k3"),
        ([EqualNullSafe(KEY, "k3")], "k3"),
        ([In(KEY, ("k1", "k4", "none", None))], "k1 k4"),
        ([In(KEY, ("k1", "k4")), EqualTo(KEY, "k4")], "k4"),
        ([EqualTo(KEY, "none")], ""),
        ([EqualTo(KEY, "a\0")], ""),
        ([StringStartsWith(KEY, "le")], "leased"),
        ([StringStartsWith(KEY, "k"), In(KEY, ("k1", "leased"))], "k1"),
        ([LessThan(DUE, SIXTH - timedelta(days=4))], "k0 leased"),
        ([LessThanOrEqual(DUE, SIXTH - timedelta(days=4))], "k0 k1 leased"),
        ([GreaterThan(DUE, SIXTH)], "k6 k7"),
        ([GreaterThan(DUE, SIXTH - BIT)], "k5 k6 k7"),
        ([GreaterThanOrEqual(DUE, SIXTH + BIT)], "k6 k7"),
        ([LessThan(DELIVER, SIXTH + BIT), GreaterThan(DELIVER, PAST)], "k0 k1 k2 k3 k4 k5"),
        ([EqualTo(DUE, SIXTH)], "k5"),
        ([EqualTo(DUE, SIXTH + BIT)], ""),
        ([IsNotNull(LEASED)], "leased"),
        ([IsNull(LEASED), IsNotNull(KEY), GreaterThan(DUE, SIXTH)], "k6 k7"),
        ([GreaterThan(LEASED, PAST)], "leased"),
        ([LessThan(LEASED, PAST)], ""),
    ],
)
def test_the_database_applies_it(options: dict[str, str], filters: list[Filter], keys: str) -> None:
    conditions, left = push(Conditions(), filters)
    assert left == []
    with OpenBulk(parse(options)) as bulk:
        snapshots = bulk.snapshots()
        (part,) = bulk.plan(1, 1)
        pages = list(snapshots.read(part, 100, SnapshotQuery(conditions=conditions)))
    assert sorted(key for page in pages for key in page[0]) == keys.split()


def test_spark_applies_the_rest(spark: SparkSession, options: dict[str, str]) -> None:
    condition = "startswith(key, 'k') AND due_at > timestamp'2100-01-05' AND key LIKE '%6'"
    frame = spark.read.format("duequeue").options(**options).load()
    chosen: Any = frame.filter(condition)
    assert [row.key for row in chosen.collect()] == ["k6"]
    words = chosen._jdf.queryExecution().executedPlan().toString()  # noqa: SLF001 - there is no other way
    (applied,) = [line for line in words.splitlines() if "Filter " in line.partition("[")[0]]
    assert "EndsWith(key" in applied
    assert "StartsWith" not in applied
    assert "due_at" not in applied


def test_without_pushdown_spark_applies_all(spark: SparkSession, options: dict[str, str]) -> None:
    spark.conf.set(PUSHDOWN, "false")
    try:
        frame = spark.read.format("duequeue").options(**options).load()
        assert [row.key for row in frame.filter("key = 'k3'").collect()] == ["k3"]
    finally:
        spark.conf.set(PUSHDOWN, "true")


def pushed(*filters: Filter) -> tuple[Conditions, list[Filter]]:
    return push(Conditions(), filters)


def test_what_cannot_be_pushed_goes_back_to_spark() -> None:
    contains = StringContains(("key",), "x")
    nested = EqualTo(("key", "inner"), "x")
    without_zone = EqualTo(("due_at",), datetime(2026, 1, 1))  # noqa: DTZ001 - intended
    left = [contains, nested, without_zone]
    assert pushed(*left) == (Conditions(), left)


@pytest.mark.parametrize("column", ["payload", "created_at", "updated_at"])
def test_whether_a_column_is_null_is_for_spark_to_see(column: str) -> None:
    """A payload may not fit its column, and Redis stores no instants of creation."""
    asked = IsNotNull((column,))
    assert pushed(asked) == (Conditions(), [asked])


@pytest.mark.parametrize(
    ("prefix", "before"), [("k", "l"), ("a\U0010ffff", "b"), ("\ud7ff", "\ue000")]
)
def test_the_end_of_a_prefix(prefix: str, before: str) -> None:
    expected = Conditions(key_from=prefix, key_before=before)
    assert pushed(StringStartsWith(("key",), prefix)) == (expected, [])


def test_one_key_reads_one_index_entry_of_sqlite(tmp_path: Path) -> None:
    path = tmp_path / "queue.db"
    Queue.open(f"sqlite:///{path}", "orders").close()
    asked = {**Conditions()._asdict(), "kind_id": 1, "with_payload": True, "keys": '["k7"]'}
    with closing(sqlite3.connect(path)) as file:
        explained = f"EXPLAIN QUERY PLAN {QUERIES['select_messages']}"
        plan = file.execute(explained, asked).fetchall()
    assert "USING INDEX duequeue_message_key (kind_id=? AND key=?)" in plan[0][-1]


@pytest.mark.parametrize("statistics", STATISTICS.values(), ids=STATISTICS)
@pytest.mark.parametrize(
    "looked_up", [{"keys": ["k7"]}, {"key_from": "k77", "key_before": "k78"}], ids=["key", "prefix"]
)
def test_keys_are_looked_up_in_their_index_of_postgres(
    postgres_url: str, statistics: str, looked_up: dict[str, Any]
) -> None:
    with (
        Queue.open(postgres_url, "orders") as queue,
        psycopg.connect(
            postgres_url, cursor_factory=psycopg.ClientCursor, autocommit=True
        ) as server,
    ):
        # The statistics are to be what the test says.
        server.execute("ALTER TABLE duequeue_message SET (autovacuum_enabled = off)")
        queue.offer_batch(Message(f"k{number}", 1, FUTURE) for number in range(2000))
        server.execute(statistics)
        kind = server.execute("SELECT id FROM duequeue_kind WHERE kind = 'orders|json'").fetchone()
        assert kind is not None
        asked = {**Conditions()._asdict(), "kind_id": kind[0], "with_payload": True, **looked_up}
        with server.transaction():
            server.execute(USE_AN_INDEX)
            explained = b"EXPLAIN (ANALYZE, TIMING OFF) " + queries()["select_messages"]
            plan = server.execute(explained, asked).fetchall()
    words = "\n".join(line for (line,) in plan)
    # Which of the two scans costs less is a matter of the statistics.
    assert re.search(r"(Index Scan using|Bitmap Index Scan on) duequeue_message_key", words)
    assert "duequeue_message_due" not in words
    assert "Removed by" not in words
