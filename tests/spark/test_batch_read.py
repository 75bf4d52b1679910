"""`spark.read.format("duequeue")`: one picture of the queue, which changes nothing."""

import gc
from contextlib import closing
from datetime import timedelta
from time import monotonic
from typing import Any

import psycopg
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from duequeue import Message, Queue, StoreUnavailable
from duequeue.bulk.port import SnapshotPart
from duequeue.spark import offer
from duequeue.spark.batch_reader import BatchReader, SnapshotPartition
from duequeue.spark.open_bulk import OpenBulk
from duequeue.spark.options import parse
from duequeue.spark.read_rows import full_schema
from tests.fixtures.postgres import PostgresServer
from tests.fixtures.stores import on_every_bulk_store
from tests.race.watching import until_one
from tests.spark.conftest import OpenPlain
from tests.spark.frames import FUTURE, PAST, later, messages
from tests.spark.tables import LET_GO, ask

MANY = 3000
# One, once this is the only connection to the database.
ALONE = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND backend_type = 'client backend'
"""


def load(spark: SparkSession, url: str, schema: str | None = None, **options: str) -> DataFrame:
    reader = spark.read.format("duequeue").options(**{"url": url, "queue": "orders", **options})
    return (reader.schema(schema) if schema else reader).load()


@on_every_bulk_store
def test_every_column(spark: SparkSession, url: str, queue: Queue[Any]) -> None:
    queue.offer("a", {"n": 1}, later(0.25), headers={"trace": "7"})
    queue.offer("b", {"n": 2}, FUTURE)
    held = queue.try_poll()
    assert held is not None
    by_key = {row.key: row for row in load(spark, url).collect()}
    a, b = by_key["a"], by_key["b"]
    assert (a.payload, a.headers, a.attempt) == ('{"n":1}', {"trace": "7"}, 1)
    assert (b.payload, b.headers, b.attempt, b.leased_until) == ('{"n":2}', None, 0, None)
    assert a.updated_at is None
    micros = load(spark, url).selectExpr(
        "key", "unix_micros(due_at)", "unix_micros(deliver_at)", "unix_micros(leased_until)"
    )
    known = {row[0]: row[1:] for row in micros.collect()}
    due = round(later(0.25).timestamp() * 1e6)
    assert known["a"] == (due, due, round(held.lease_until.timestamp() * 1000) * 1000)
    assert known["b"][0] == round(FUTURE.timestamp() * 1e6)


def test_reading_changes_nothing(spark: SparkSession, url: str, queue: Queue[Any]) -> None:
    queue.offer("a", 1, PAST)
    before = ask(url, "SELECT * FROM duequeue_message")
    load(spark, url).collect()
    assert ask(url, "SELECT * FROM duequeue_message") == before
    assert queue.try_poll() is not None


def test_an_empty_queue_and_one_among_others(
    spark: SparkSession, url: str, open_plain: OpenPlain
) -> None:
    assert load(spark, url).count() == 0
    open_plain("others").offer("theirs", 1)
    open_plain(codec=str).offer("text", "of another type")
    open_plain().offer("ours", 1)
    assert [row.key for row in load(spark, url).collect()] == ["ours"]
    assert [row.payload for row in load(spark, url, codec="text").collect()] == ["of another type"]


@on_every_bulk_store
@pytest.mark.parametrize("parts", ["1", "3", "20"])
def test_every_message_once_however_it_is_cut(
    spark: SparkSession, url: str, queue: Queue[Any], parts: str
) -> None:
    queue.offer_batch(Message(f"k{number}", "x" * 200, FUTURE) for number in range(3000))
    queue.offer_batch(Message(f"k{number}", "y", FUTURE) for number in range(0, 3000, 2))
    frame = load(spark, url, numPartitions=parts, batchSize="100")
    assert frame.rdd.getNumPartitions() <= int(parts)
    assert frame.selectExpr("count(*)", "count(DISTINCT key)").collect() == [(3000, 3000)]


def test_only_the_columns_asked_for(spark: SparkSession, url: str, queue: Queue[Any]) -> None:
    queue.offer("a", 1, PAST)
    assert load(spark, url, "attempt int, key string").collect() == [(0, "a")]


def test_payloads_as_bytes(spark: SparkSession, url: str, open_plain: OpenPlain) -> None:
    open_plain(codec=bytes).offer("a", b"\xff\x00")
    assert load(spark, url, codec="bytes").first()["payload"] == b"\xff\x00"  # type: ignore[index]
    with pytest.raises(PySparkException, match="with the option payloadType=binary"):
        load(spark, url, codec="bytes", payloadType="string").collect()
    assert load(spark, url, "key string", codec="bytes", payloadType="string").count() == 1


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (
            "key string, due timestamp",
            "column 'due' cannot be read; the known columns are: key, payload",
        ),
        ("due_at bigint", "column 'due_at' must be timestamp in the schema, not bigint"),
    ],
)
def test_a_schema_that_does_not_fit(spark: SparkSession, url: str, schema: str, words: str) -> None:
    with pytest.raises(PySparkException, match=words):
        load(spark, url, schema).collect()


def test_wrong_options(spark: SparkSession, url: str) -> None:
    with pytest.raises(PySparkException, match="did you mean 'numPartitions'"):
        load(spark, url, partitions="3")
    with pytest.raises(PySparkException, match="option 'queue' is missing"):
        spark.read.format("duequeue").option("url", url).load()


def test_what_is_read_can_be_offered_again(
    spark: SparkSession, url: str, queue: Queue[Any]
) -> None:
    queue.offer_batch(Message(f"k{number}", number, FUTURE) for number in range(100))
    copy = load(spark, url).select("key", "payload", "due_at", "headers")
    assert offer(copy, url=url, queue="copies").created == 100
    assert offer(copy, url=url, queue="orders").ignored == 100


def test_garbage_is_collected_again_after_a_read_that_was_given_up(
    url: str, queue: Queue[Any]
) -> None:
    queue.offer_batch(Message(f"k{number}", 1, PAST) for number in range(9))
    options = parse({"url": url, "queue": "orders", "batchSize": "1"})
    with OpenBulk(options) as bulk:
        part = SnapshotPartition(bulk.store.kind_id, SnapshotPart(0, 0, 2**31, None))
    with closing(BatchReader(options, full_schema(options)).read(part)) as pages:
        assert next(pages).num_rows == 1
        assert not gc.isenabled()
    assert gc.isenabled()


def show(frame: DataFrame) -> None:
    frame.show(3)


def limit(frame: DataFrame) -> None:
    assert len(frame.limit(3).collect()) == 3


def is_empty(frame: DataFrame) -> None:
    assert not frame.isEmpty()


def fail(frame: DataFrame) -> None:
    with pytest.raises(PySparkException, match="no such order"):
        frame.selectExpr("raise_error('no such order')").collect()


class TestOneMoment:
    """On PostgreSQL all parts show the same moment, whatever happens while they are read."""

    @pytest.fixture(params=["postgres"])
    def url(self, ready_database: str) -> str:
        return ready_database

    def test_parts_read_late_show_the_moment_of_planning(
        self, spark: SparkSession, url: str, queue: Queue[Any]
    ) -> None:
        offer(messages(spark, 20_000), url=url, queue="orders")
        frame = load(spark, url, "key string, attempt int", numPartitions="4")
        frame.rdd.getNumPartitions()  # plans it
        assert queue.drop_all("orders") == 20_000
        offer(messages(spark, 50, "timestamp'2100-01-01'"), url=url, queue="orders")
        assert len({row.key for row in frame.collect()}) == 20_000
        assert load(spark, url).count() == 50

    def test_the_moment_is_let_go_once_all_is_read(
        self, spark: SparkSession, url: str, queue: Queue[Any]
    ) -> None:
        queue.offer_batch(Message(f"k{number}", "x" * 200, FUTURE) for number in range(MANY))
        with psycopg.connect(url, autocommit=True) as watch:
            frame = load(spark, url, numPartitions="3", snapshotTimeout="20 s")
            frame.rdd.getNumPartitions()  # plans it
            assert ask(url, LET_GO) == [(0,)], "one process with one connection"
            assert len(frame.collect()) == MANY
            until_one(watch, LET_GO)

    def test_a_frame_can_be_used_twice_in_a_row(
        self, spark: SparkSession, url: str, queue: Queue[Any]
    ) -> None:
        queue.offer_batch(Message(f"k{number}", "x" * 200, FUTURE) for number in range(MANY))
        frame = load(spark, url, numPartitions="3")
        assert len(frame.collect()) == MANY
        queue.drop("k7")
        assert len(frame.collect()) == MANY, "the same moment"

    def test_a_lost_snapshot_fails(self, spark: SparkSession, url: str, queue: Queue[Any]) -> None:
        frame = self.lost(spark, url, queue)
        with pytest.raises(PySparkException, match="the snapshot of this read is no longer kept"):
            frame.collect()

    def test_a_lost_snapshot_may_be_accepted(
        self, spark: SparkSession, url: str, queue: Queue[Any]
    ) -> None:
        assert len(self.lost(spark, url, queue, failOnSnapshotLoss="false").collect()) == MANY

    def lost(self, spark: SparkSession, url: str, queue: Queue[Any], **options: str) -> DataFrame:
        """Return a planned read whose snapshot is no longer kept."""
        queue.offer_batch(Message(f"k{number}", "x" * 200, FUTURE) for number in range(MANY))
        with psycopg.connect(url, autocommit=True) as watch:
            frame = load(spark, url, numPartitions="3", snapshotTimeout="1 ms", **options)
            assert frame.rdd.getNumPartitions() == 3
            until_one(watch, LET_GO)
        return frame

    def test_a_restart_of_the_server_loses_the_snapshot(
        self, spark: SparkSession, frail_server: PostgresServer
    ) -> None:
        url = frail_server.create_database()
        with Queue.open(url, "orders") as queue:
            queue.offer_batch(Message(f"k{number}", "x" * 200, FUTURE) for number in range(MANY))
        strict = load(spark, url, numPartitions="3")
        lenient = load(spark, url, numPartitions="3", failOnSnapshotLoss="false")
        assert [each.rdd.getNumPartitions() for each in (strict, lenient)] == [3, 3]
        frail_server.restart()
        with pytest.raises(PySparkException, match="the server was restarted"):
            strict.collect()
        assert len(lenient.collect()) == MANY

    def test_queries_that_end_early_leave_nothing_behind(
        self, spark: SparkSession, url: str
    ) -> None:
        with Queue.open(url, "orders") as queue:
            queue.offer_batch(Message(f"k{number}", "x" * 200, FUTURE) for number in range(MANY))
        # On a slow machine, the short time that a snapshot is kept must not fail a query.
        short = {"snapshotTimeout": "20 s", "failOnSnapshotLoss": "false", "batchSize": "100"}
        with psycopg.connect(url, autocommit=True) as watch:
            for query in (show, limit, is_empty, fail):
                query(load(spark, url, numPartitions="3", **short))
            until_one(watch, ALONE)

    def test_one_part_keeps_no_snapshot(
        self, spark: SparkSession, url: str, queue: Queue[Any]
    ) -> None:
        queue.offer_batch(Message(f"k{number}", 1, FUTURE) for number in range(MANY))
        frame = load(spark, url)
        assert frame.rdd.getNumPartitions() == 1, "of a small table"
        assert ask(url, LET_GO) == [(1,)]
        assert len(frame.collect()) == MANY
        queue.offer("one more", 1)
        assert len(frame.collect()) == MANY + 1, "the present"

    def test_an_unreachable_server_fails_within_seconds(self) -> None:
        options = parse({"url": "postgresql://127.0.0.1:9/app", "queue": "orders"})
        reader = BatchReader(options, full_schema(options))
        began = monotonic()
        with pytest.raises(StoreUnavailable, match=r"PostgreSQL at 127\.0\.0\.1:9/app: .*refused"):
            reader.partitions()
        assert monotonic() - began < 25  # it would otherwise try for thirty seconds


def test_times_are_read_as_they_were_asked_for(
    spark: SparkSession, url: str, queue: Queue[Any]
) -> None:
    queue.offer("a", 1, PAST)
    delivery = queue.try_poll()
    assert delivery is not None
    assert delivery.release(timedelta(days=1))
    queue.offer("b", 1, PAST)
    found = load(spark, url).selectExpr(
        "key", "deliver_at > due_at", "due_at = timestamp'2020-01-01'"
    )
    assert sorted(map(tuple, found.collect())) == [("a", True, True), ("b", False, True)]
    alone = load(spark, url, "key string, deliver_at timestamp").selectExpr(
        "key", "deliver_at = timestamp'2020-01-01'"
    )
    assert sorted(map(tuple, alone.collect())) == [("a", False), ("b", True)]
