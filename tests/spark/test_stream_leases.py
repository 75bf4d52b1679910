"""What a stream can be asked for beside: whose lease it is, what is not due yet, a history."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadMaxRows

from duequeue import DueQueueError, Message, Outcome, Queue
from duequeue.bulk.port import STALE_AFTER, BatchId, Reach
from duequeue.spark.open_bulk import OpenBulk
from duequeue.spark.options import parse
from duequeue.spark.read_rows import full_schema
from duequeue.spark.stream_leases import NO_LIMIT
from duequeue.spark.stream_reader import StreamReader
from tests.fixtures.stores import on_every_bulk_store, on_redis_too
from tests.spark.frames import FUTURE, PAST
from tests.spark.streams import run_through, stream, to_function
from tests.spark.tables import change

LEASED = "key string, lease struct<consumer:string,sequence:bigint,id:bigint>"


def test_the_lease_names_consumer_batch_and_message(
    spark: SparkSession, url: str, queue: Queue[Any], tmp_path: Path
) -> None:
    queue.offer("now", 1, PAST)
    queue.offer("later", 1, FUTURE)
    seen: list[Any] = []
    frame = stream(spark, url, LEASED, consumerId="me", includeFuture="true", history="true")
    run_through(to_function(frame, tmp_path, lambda rows, _: seen.extend(rows.collect())))
    assert {row.key: (row.lease.consumer, row.lease.sequence) for row in seen} == {
        "now": ("me", 1),
        "later": ("me", 1),
    }
    assert len({row.lease.id for row in seen}) == 2
    assert queue.stats().total == 0
    kept = queue.history(9)
    assert {(each.key, each.outcome, each.attempts) for each in kept} == {
        ("now", Outcome.ACKED, 1),
        ("later", Outcome.ACKED, 1),
    }
    assert all(
        each.delivered_at is not None and each.delivered_at <= each.settled_at for each in kept
    )


def test_a_snapshot_has_no_leases(spark: SparkSession, url: str, queue: Queue[Any]) -> None:
    reader = spark.read.format("duequeue").options(url=url, queue="orders").schema(LEASED)
    with pytest.raises(PySparkException, match="column 'lease' cannot be read"):
        reader.load().collect()


def test_a_run_ends_though_messages_keep_changing(url: str, queue: Queue[Any]) -> None:
    queue.offer_batch(Message(f"k{number}", 0, FUTURE) for number in range(20))
    options = parse({"url": url, "queue": "orders", "includeFuture": "true"})
    reader = StreamReader(options, full_schema(options))
    reader.prepareForTriggerAvailableNow()
    taken, at = 0, reader.initialOffset()
    try:
        while (latest := reader.latestOffset(at, ReadMaxRows(10))) != at:
            taken += latest["rows"]
            queue.offer_batch(Message(f"k{number}", taken, FUTURE) for number in range(20))
            at = latest
    finally:
        reader.stop()
    assert 20 <= taken < 40


@on_redis_too
def test_slices_that_were_read_are_acked_and_only_the_others_are_due_again(
    url: str, queue: Queue[Any]
) -> None:
    keys = [f"k{number:04}" for number in range(2500)]
    queue.offer_batch(Message(key, 0, PAST) for key in keys)
    options = parse(
        {"url": url, "queue": "orders", "numPartitions": 3, "maxMessagesPerTrigger": 2500}
    )
    reader = StreamReader(options, full_schema(options))
    first = reader.initialOffset()
    try:
        leased = reader.latestOffset(first, ReadMaxRows(2500))
        read, *_, begun = reader.partitions(first, leased)
        assert sum(page.num_rows for page in reader.read(read)) == 1000
        next(iter(reader.read(begun)))  # a reader that is cut short has not read its slice
        with pytest.raises(DueQueueError, match="has skipped 1500 messages of the queue 'orders'"):
            reader.latestOffset(leased, ReadMaxRows(2500))
        assert queue.stats().due == 1500
        taken = reader.latestOffset(leased, ReadMaxRows(2500))
        rest = [row for part in reader.partitions(leased, taken) for row in reader.read(part)]
        assert sorted(key for page in rest for key in page["key"].to_pylist()) == keys[1000:]
        assert reader.latestOffset(taken, ReadMaxRows(2500)) == taken
    finally:
        reader.stop()
    assert queue.stats().total == 0


@on_every_bulk_store
def test_a_batch_of_an_earlier_version_counts_as_read(url: str, queue: Queue[Any]) -> None:
    """It was leased before slices told whether they were read."""
    queue.offer("a", 0, PAST)
    options = parse({"url": url, "queue": "orders"})
    reader = StreamReader(options, full_schema(options))
    first = reader.initialOffset()
    try:
        leased = reader.latestOffset(first, ReadMaxRows(1))
        change(url, "UPDATE duequeue_stream_batch SET unread = NULL")
        assert reader.latestOffset(leased, ReadMaxRows(1)) == leased
    finally:
        reader.stop()
    assert queue.stats().total == 0


def test_a_named_consumer_whose_old_batch_is_forgotten_begins_anew(
    url: str, queue: Queue[Any]
) -> None:
    queue.offer("a", 1, PAST)
    options = parse({"url": url, "queue": "orders", "consumerId": "me"})
    with OpenBulk(options) as bulk:
        long_ago = bulk.now() - 2 * STALE_AFTER
        batch, reach = BatchId("me", 3), Reach(bulk.now(), NO_LIMIT)
        bulk.run(partial(bulk.store.lease, batch, 10, 10, bulk.now(), long_ago, reach))
    queue.drop("a")
    reader = StreamReader(options, full_schema(options))
    try:
        start = reader.initialOffset()
        end = reader.latestOffset(start, ReadMaxRows(10))
        assert reader.initialOffset() == start, "Spark asks again"
        assert reader.partitions(start, end) == []
        assert reader.partitions({"consumer": "me", "sequence": 0}, {**end, "sequence": 2}) == []
    finally:
        reader.stop()
