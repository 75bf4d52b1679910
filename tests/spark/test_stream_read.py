"""`spark.readStream.format("duequeue")`: leased, delivered, and acked once Spark has committed."""

import shutil
import threading
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from duequeue import Message, Queue
from duequeue.spark import offer
from tests.fixtures.stores import on_every_bulk_store, on_redis_too
from tests.race.together import PATIENCE
from tests.spark.conftest import OpenPlain
from tests.spark.frames import FUTURE, PAST, later, messages
from tests.spark.streams import in_files, run_through, stream, to_files, to_function
from tests.spark.tables import ask, count


def fill(queue: Queue[Any], number: int) -> list[str]:
    """Offer as many due messages, and return their keys in order of text."""
    keys = [f"k{each}" for each in range(number)]
    queue.offer_batch(Message(key, {"n": at}, PAST) for at, key in enumerate(keys))
    return sorted(keys)


@on_every_bulk_store
def test_what_is_due_is_delivered_and_acked(
    spark: SparkSession, url: str, queue: Queue[Any], tmp_path: Path
) -> None:
    keys = fill(queue, 2500)
    queue.offer("later", 1, FUTURE)
    run_through(to_files(stream(spark, url, maxMessagesPerTrigger="1000"), tmp_path))
    assert in_files(spark, tmp_path) == keys
    assert queue.stats().total == 1
    assert count(url, "duequeue_stream_batch") == 0
    run_through(to_files(stream(spark, url), tmp_path))
    assert in_files(spark, tmp_path) == keys


def test_every_column(spark: SparkSession, url: str, queue: Queue[Any], tmp_path: Path) -> None:
    queue.offer("a", {"n": 1}, later(1), headers={"trace": "7"})
    seen: list[Any] = []
    writer = to_function(stream(spark, url), tmp_path, lambda rows, _: seen.extend(rows.collect()))
    run_through(writer)
    (row,) = seen
    assert (row.key, row.payload, row.headers, row.attempt) == ("a", '{"n":1}', {"trace": "7"}, 1)
    assert row.leased_until is None
    assert row.due_at == row.deliver_at


def test_batches_are_limited_and_in_due_order(
    spark: SparkSession, url: str, queue: Queue[Any], tmp_path: Path
) -> None:
    queue.offer_batch(Message(f"k{number:02}", 1, later(-number)) for number in range(30))
    batches: list[list[str]] = []
    frame = stream(spark, url, "key string", maxMessagesPerTrigger="10", numPartitions="1")
    run_through(
        to_function(
            frame, tmp_path, lambda rows, _: batches.append([row.key for row in rows.collect()])
        )
    )
    assert batches == [
        [f"k{number:02}" for number in range(start, start - 10, -1)] for start in (29, 19, 9)
    ]


def test_while_a_batch_runs_its_messages_are_held(
    spark: SparkSession, url: str, queue: Queue[Any], tmp_path: Path
) -> None:
    fill(queue, 10)
    seen: list[tuple[int, bool]] = []

    def look(rows: DataFrame, _: int) -> None:
        seen.append((queue.stats().leased, queue.try_poll() is None))

    run_through(to_function(stream(spark, url), tmp_path, look))
    assert seen == [(10, True)]
    assert queue.stats().total == 0


@on_every_bulk_store
def test_a_failed_batch_is_replayed_with_the_same_messages(
    spark: SparkSession, url: str, queue: Queue[Any], tmp_path: Path
) -> None:
    fill(queue, 20)
    seen: list[set[str]] = []

    def fail_once(rows: DataFrame, _: int) -> None:
        seen.append({row.key for row in rows.collect()})
        if len(seen) == 1:
            queue.offer("new", 1, later(-1))
            raise RuntimeError("the sink is down")

    writer = to_function(stream(spark, url, maxMessagesPerTrigger="20"), tmp_path, fail_once)
    with pytest.raises(PySparkException, match="the sink is down"):
        run_through(writer)
    assert queue.stats().total == 21, "nothing was acked"
    run_through(writer)
    assert seen == [seen[0], seen[0], {"new"}]
    assert queue.stats().total == 0


def test_a_batch_may_last_longer_than_the_lease(
    spark: SparkSession, url: str, queue: Queue[Any], tmp_path: Path
) -> None:
    fill(queue, 10)
    beats: list[int] = []

    def outlast(rows: DataFrame, _: int) -> None:
        first = lease_end()
        while lease_end() < first + 4000:  # longer than the lease lasted when it began
            assert queue.try_poll() is None
            threading.Event().wait(0.05)
        beats.append(rows.count())

    def lease_end() -> int:
        return int(ask(url, "SELECT min(leased_until) FROM duequeue_message")[0][0])

    run_through(to_function(stream(spark, url, lease="3 s"), tmp_path, outlast))
    assert beats == [10]
    assert queue.stats().total == 0


@on_every_bulk_store
def test_two_queries_share_the_work(
    spark: SparkSession, url: str, queue: Queue[Any], tmp_path: Path
) -> None:
    keys = fill(queue, 4000)
    handled: dict[str, list[str]] = {"a": [], "b": []}
    both_have_one = threading.Barrier(2)

    def handle(name: str, rows: DataFrame, number: int) -> None:
        handled[name] += [row.key for row in rows.collect()]
        if number == 0:
            both_have_one.wait(PATIENCE)

    frame = stream(spark, url, "key string", maxMessagesPerTrigger="500")
    queries = [
        to_function(frame, tmp_path / name, partial(handle, name))
        .trigger(availableNow=True)
        .start()
        for name in handled
    ]
    for query in queries:
        assert query.awaitTermination(int(PATIENCE))
    assert min(len(part) for part in handled.values()) >= 500
    assert sorted(handled["a"] + handled["b"]) == keys
    assert queue.stats().total == 0


def test_a_plain_consumer_and_a_query_share_the_work(
    spark: SparkSession, url: str, queue: Queue[Any], tmp_path: Path
) -> None:
    keys = fill(queue, 2000)
    by_query: list[str] = []
    by_consumer: SimpleQueue[str] = SimpleQueue()
    consumers = ExitStack()
    first: list[str] = []

    def handle(rows: DataFrame, number: int) -> None:
        by_query.extend(row.key for row in rows.collect())
        if number == 0:
            consumers.enter_context(queue.consume(lambda each: by_consumer.put(each.key)))
            first.append(by_consumer.get(timeout=PATIENCE))

    with consumers:
        frame = stream(spark, url, "key string", maxMessagesPerTrigger="200")
        run_through(to_function(frame, tmp_path, handle))
        missing = len(keys) - len(by_query) - len(first)
        rest = [by_consumer.get(timeout=PATIENCE) for _ in range(missing)]
    assert sorted(by_query + first + rest) == keys
    assert by_consumer.empty()
    assert queue.stats().total == 0


def test_a_running_query_finds_what_falls_due(
    spark: SparkSession, url: str, queue: Queue[Any], tmp_path: Path
) -> None:
    seen: SimpleQueue[str] = SimpleQueue()

    def tell(rows: DataFrame, _: int) -> None:
        for row in rows.collect():
            seen.put(row.key)

    query = to_function(stream(spark, url), tmp_path, tell).start()
    try:
        for key in "abc":
            queue.offer(key, 1)
            assert seen.get(timeout=PATIENCE) == key
        while queue.stats().total:  # acked although nothing new comes
            assert query.isActive
    finally:
        query.stop()


def test_available_now_leaves_what_comes_later(
    spark: SparkSession, url: str, queue: Queue[Any], tmp_path: Path
) -> None:
    fill(queue, 30)
    batches: list[int] = []

    def add_more(rows: DataFrame, number: int) -> None:
        batches.append(rows.count())
        queue.offer(f"more {number}", 1, PAST)

    frame = stream(spark, url, maxMessagesPerTrigger="10")
    run_through(to_function(frame, tmp_path, add_more))
    assert batches == [10, 10, 10]
    assert queue.stats().total == 3


@on_every_bulk_store
def test_an_updated_message_is_not_acked(
    spark: SparkSession, url: str, queue: Queue[Any], tmp_path: Path
) -> None:
    fill(queue, 3)

    def update(rows: DataFrame, _: int) -> None:
        if rows.count() == 3:
            queue.offer("k1", "changed", FUTURE)

    run_through(to_function(stream(spark, url), tmp_path, update))
    assert queue.stats().total == 1
    assert queue.read("k1").payload == "changed"  # type: ignore[union-attr]


@pytest.mark.parametrize("good", [[], ["good"]])
def test_text_that_is_none_is_buried(
    spark: SparkSession, url: str, open_plain: OpenPlain, tmp_path: Path, good: list[str]
) -> None:
    files = open_plain("files", codec=bytes)
    files.offer_batch(Message(key, b"fine", PAST) for key in good)
    files.offer("bad", b"\xff", PAST)
    frame = stream(spark, url, queue="files", codec="bytes", payloadType="string")
    run_through(to_files(frame, tmp_path))
    assert in_files(spark, tmp_path) == good
    (buried,) = files.buried(9)
    assert (buried.key, buried.attempts) == ("bad", 1)
    assert "not UTF-8" in buried.reason
    assert files.stats().total == 0


def test_a_named_consumer_finds_its_lease_again_without_a_checkpoint(
    spark: SparkSession, url: str, queue: Queue[Any], tmp_path: Path
) -> None:
    fill(queue, 5)

    def fail(rows: DataFrame, _: int) -> None:
        raise RuntimeError("down")

    frame = stream(spark, url, consumerId="nightly")
    with pytest.raises(PySparkException, match="down"):
        run_through(to_function(frame, tmp_path / "lost", fail))
    run_through(to_files(frame, tmp_path))
    assert len(in_files(spark, tmp_path)) == 5


def test_a_named_consumer_goes_on_where_its_lost_checkpoint_was(
    spark: SparkSession, url: str, queue: Queue[Any], tmp_path: Path
) -> None:
    """Its third batch fails, and the fourth is leased ahead."""
    keys = fill(queue, 40)

    def fail_later(rows: DataFrame, number: int) -> None:
        if number == 2:
            raise RuntimeError("down")

    frame = stream(spark, url, consumerId="nightly", maxMessagesPerTrigger="10")
    with pytest.raises(PySparkException, match="down"):
        run_through(to_function(frame, tmp_path / "lost", fail_later))
    assert queue.stats().total == 20
    run_through(to_files(frame, tmp_path))
    delivered = in_files(spark, tmp_path)
    assert len(delivered) == len(set(delivered) & set(keys)) == 20
    assert queue.stats().total == 0
    assert count(url, "duequeue_stream_batch") == 0


@on_redis_too
def test_what_a_sink_skips_is_due_again_and_told_of(
    spark: SparkSession, url: str, queue: Queue[Any], tmp_path: Path
) -> None:
    """The file sink has a batch 0 of another checkpoint already, so it does not read this one."""
    fill(queue, 50)
    frame = stream(spark, url, history="true")
    run_through(to_files(frame, tmp_path))
    keys = fill(queue, 50)
    shutil.rmtree(tmp_path / "checkpoint")
    with pytest.raises(PySparkException, match="the sink has skipped 50 messages of the queue 'or"):
        run_through(to_files(frame, tmp_path))
    assert len(in_files(spark, tmp_path)) == 50
    assert (queue.stats().due, queue.stats().leased) == (50, 0)
    run_through(to_files(frame, tmp_path / "own"))
    assert in_files(spark, tmp_path / "own") == keys
    assert queue.stats().total == 0


def test_a_sink_may_skip_what_it_wrote_before_a_crash(
    spark: SparkSession, url: str, queue: Queue[Any], tmp_path: Path
) -> None:
    """The crash comes between the commit of the sink and that of Spark."""
    keys = fill(queue, 50)
    frame = stream(spark, url, consumerId="me")
    query = to_files(frame, tmp_path).start()
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    for name in ("0", ".0.crc"):
        (tmp_path / "checkpoint" / "commits" / name).unlink()
    run_through(to_files(frame, tmp_path))
    assert in_files(spark, tmp_path) == keys
    assert queue.stats().total == 0


def test_wrong_options(spark: SparkSession, url: str, tmp_path: Path) -> None:
    with pytest.raises(PySparkException, match="did you mean 'maxMessagesPerTrigger'"):
        stream(spark, url, maxMessagesTrigger="5")
    with pytest.raises(
        PySparkException, match="option 'lease': lease must be at least one millisecond"
    ):
        stream(spark, url, lease="0s")


def test_a_few_due_messages_among_many_that_are_not(
    spark: SparkSession, url: str, queue: Queue[Any], tmp_path: Path
) -> None:
    many = 100_000
    future = messages(spark, many, "timestamp'2100-01-01'")
    due = future.selectExpr(
        "key", "payload", "if(key LIKE '%7777', timestamp'2020-01-01', due_at) AS due_at"
    )
    assert offer(due, url=url, queue="orders", distribute=False).created == many
    frame = stream(spark, url, "key string")
    run_through(to_files(frame, tmp_path))
    keys = sorted(f"k{number}" for number in range(7777, many, 10_000))
    assert in_files(spark, tmp_path) == keys
    assert queue.stats().total == many - len(keys)
