"""`df.write.format("duequeue")` and `offer(df)`: a bulk offer, as good as one by one."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from duequeue import OfferOutcome, Outcome, Queue, StoreError
from duequeue.spark import OfferCounts, offer
from tests.fixtures.stores import on_every_bulk_store
from tests.race.together import PATIENCE
from tests.spark.conftest import OpenPlain
from tests.spark.frames import FUTURE, PAST, SCHEMA, later, messages, rows, session_in
from tests.spark.tables import ask, count, drained


def save(frame: DataFrame, url: str, **options: str) -> None:
    given = {"url": url, "queue": "orders", **options}
    frame.write.format("duequeue").options(**given).mode("append").save()


def test_a_plain_consumer_polls_what_spark_wrote(
    spark: SparkSession, url: str, queue: Queue[Any]
) -> None:
    save(rows(spark, [("b", '{"n":2}', later(1)), ("a", '{"n":1}', PAST)]), url)
    first, second = queue.try_poll_many(10)
    assert (first.key, first.payload, first.due_at, first.attempt) == ("a", {"n": 1}, PAST, 1)
    assert (second.key, second.payload, second.due_at) == ("b", {"n": 2}, later(1))
    assert queue.ack_many([first, second]) == 2


def test_what_is_not_due_waits(spark: SparkSession, url: str, queue: Queue[Any]) -> None:
    save(rows(spark, [("a", "1", FUTURE)]), url)
    assert queue.try_poll() is None
    assert queue.stats().next_due_at == FUTURE


@on_every_bulk_store
def test_new_equal_and_changed_rows_are_counted(
    spark: SparkSession, url: str, queue: Queue[Any]
) -> None:
    frame = messages(spark, 1000, "timestamp'2100-01-01'")
    assert offer(frame, url=url, queue="orders") == OfferCounts(created=1000)
    assert offer(frame, url=url, queue="orders") == OfferCounts(ignored=1000)
    changed = frame.selectExpr("key", "if(key < 'k5', '0', payload) AS payload", "due_at")
    more = changed.union(rows(spark, [("new", "1", FUTURE)]))
    counts = offer(more, url=url, queue="orders")
    below = sum(f"k{number}" < "k5" for number in range(1000))
    assert counts == OfferCounts(created=1, updated=below, ignored=1000 - below)
    assert queue.stats().total == 1001


def test_the_outcome_is_that_of_offering_one_by_one(
    spark: SparkSession, url: str, queue: Queue[Any]
) -> None:
    queue.offer("same", 1, PAST)
    queue.offer("other", 1, PAST)
    held = {delivery.key: delivery for delivery in queue.try_poll_many(2)}
    frame = rows(spark, [("same", "1", PAST), ("other", "2", PAST), ("new", "3", PAST)])
    assert offer(frame, url=url, queue="orders") == OfferCounts(1, 1, 1)
    assert held["same"].ack(), "an equal offer leaves the lease alone"
    assert not held["other"].ack(), "a changed one revokes it"
    assert {each.key: (each.payload, each.attempt) for each in drained(queue)} == {
        "other": (2, 1),
        "new": (3, 1),
    }


def test_mode_ignore_leaves_what_is_there(spark: SparkSession, url: str, queue: Queue[Any]) -> None:
    queue.offer("a", "old", PAST)
    frame = rows(spark, [("a", '"new"', PAST), ("b", '"new"', PAST)])
    assert offer(frame, url=url, queue="orders", mode="ignore") == OfferCounts(1, 0, 1)
    assert [each.payload for each in drained(queue)] == ["old", "new"]


def test_a_column_may_tell_for_each_row_whether_to_replace(
    spark: SparkSession, url: str, queue: Queue[Any]
) -> None:
    queue.offer("a", "old", PAST)
    queue.offer("b", "old", PAST)
    values = [("a", '"new"', PAST, False), ("b", '"new"', PAST, True), ("c", "1", PAST, False)]
    frame = rows(spark, values, f"{SCHEMA}, replace boolean")
    assert offer(frame, url=url, queue="orders") == OfferCounts(1, 1, 1)
    assert {each.key: each.payload for each in drained(queue)} == {
        "a": "old",
        "b": "new",
        "c": 1,
    }


def test_of_the_same_key_twice_the_later_wins(
    spark: SparkSession, url: str, queue: Queue[Any]
) -> None:
    frame = rows(spark, [("a", "1", PAST), ("b", "1", PAST), ("a", "2", PAST)])
    save(frame, url)
    assert {each.key: each.payload for each in drained(queue)} == {"a": 2, "b": 1}


def test_of_the_same_key_twice_in_mode_ignore_the_earlier_wins(
    spark: SparkSession, url: str, queue: Queue[Any]
) -> None:
    frame = rows(spark, [("a", "1", PAST), ("a", "2", PAST)])
    counts = offer(frame, url=url, queue="orders", mode="ignore", distribute=False)
    assert counts == OfferCounts(created=1, ignored=1)
    assert [each.payload for each in drained(queue)] == [1]


def test_chunks_fall_back_when_a_key_is_taken(
    spark: SparkSession, url: str, queue: Queue[Any]
) -> None:
    queue.offer("k25", {"n": 25}, PAST)
    frame = messages(spark, 100).coalesce(1)
    counts = offer(frame, url=url, queue="orders", distribute=False, batchSize="10")
    assert counts == OfferCounts(created=99, ignored=1)
    assert sorted(each.payload["n"] for each in drained(queue)) == list(range(100))


def test_instants_are_floored_to_the_millisecond(
    spark: SparkSession, url: str, queue: Queue[Any]
) -> None:
    before_epoch = datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
    save(rows(spark, [("a", "1", before_epoch), ("b", "1", PAST + timedelta(microseconds=1))]), url)
    assert [each.due_at for each in drained(queue)] == [
        before_epoch.replace(microsecond=999000),
        PAST,
    ]
    assert queue.offer("b", 1, PAST) is OfferOutcome.IGNORED


def test_the_hour_that_comes_twice_is_no_riddle(spark: SparkSession, tmp_path: Path) -> None:
    url, due = f"sqlite:///{tmp_path}/queue.db", datetime(2025, 10, 26, 0, 30, tzinfo=UTC)
    with session_in(spark, "Europe/Berlin"), Queue.open(url, "orders") as queue:
        save(rows(spark, [("first", "1", due), ("again", "1", due + timedelta(hours=1))]), url)
        found = {each.key: each.due_at for each in queue.try_poll_many(2)}
    assert found == {"first": due, "again": due + timedelta(hours=1)}


def test_due_at_may_be_milliseconds_and_payload_bytes(
    spark: SparkSession, url: str, open_plain: OpenPlain
) -> None:
    queue = open_plain("files", codec=bytes)
    frame = rows(
        spark, [("a", bytearray(b"\xff\x00"), 1500)], "key string, payload binary, due_at long"
    )
    save(frame, url, queue="files", codec="bytes")
    delivery = queue.try_poll()
    assert delivery is not None
    assert (delivery.payload, delivery.due_at.timestamp()) == (b"\xff\x00", 1.5)


def test_headers_travel_along(spark: SparkSession, url: str, queue: Queue[Any]) -> None:
    values = [("a", "1", PAST, {"trace": "7"}), ("b", "1", later(1), None)]
    save(rows(spark, values, f"{SCHEMA}, headers map<string,string>"), url)
    assert [each.headers for each in queue.try_poll_many(2)] == [{"trace": "7"}, {}]


@on_every_bulk_store
def test_keys_are_exact(spark: SparkSession, url: str, queue: Queue[Any]) -> None:
    keys = ["a", "A", "ä", "a ", "%", "_", "日本", "k" * 200]
    assert offer(rows(spark, [(key, "1", PAST) for key in keys]), url=url, queue="orders") == (
        OfferCounts(created=len(keys))
    )
    assert {each.key for each in drained(queue)} == set(keys)


def test_an_empty_frame_offers_nothing(spark: SparkSession, url: str, queue: Queue[Any]) -> None:
    assert offer(rows(spark, []), url=url, queue="orders") == OfferCounts()


@on_every_bulk_store
def test_writers_of_the_same_keys_do_not_disturb_each_other(
    spark: SparkSession, url: str, queue: Queue[Any]
) -> None:
    twice = messages(spark, 2000).repartition(4)
    counts = offer(twice.union(twice), url=url, queue="orders", distribute=False, batchSize="100")
    assert counts == OfferCounts(created=2000, ignored=2000)


@on_every_bulk_store
def test_a_waiting_consumer_is_woken(spark: SparkSession, url: str, open_plain: OpenPlain) -> None:
    handled: SimpleQueue[str] = SimpleQueue()
    patient = open_plain(poll_interval=timedelta(minutes=10))
    with patient.consume(lambda delivery: handled.put(delivery.key)):
        for key in "abc":
            save(rows(spark, [(key, "1", PAST)]), url)
            assert handled.get(timeout=PATIENCE) == key


def test_nothing_but_the_messages_is_left(spark: SparkSession, url: str, queue: Queue[Any]) -> None:
    for _ in range(2):
        offer(messages(spark, 10), url=url, queue="orders")
    assert count(url, "duequeue_message") == 10
    assert count(url, "duequeue_stage") == 0
    assert count(url, "duequeue_stream_commit") == 0


@on_every_bulk_store
def test_what_is_replaced_leaves_a_row_if_asked_for(
    spark: SparkSession, url: str, queue: Queue[Any]
) -> None:
    for options in ({}, {"history": "true"}, {"history": "true"}):
        queue.offer("a", "old", PAST)
        save(rows(spark, [("a", "1", FUTURE), ("b", "1", FUTURE)]), url, **options)
    (first, second) = queue.history(9)
    for row in (first, second):
        assert (row.key, row.due_at, row.outcome) == ("a", PAST, Outcome.REPLACED)


def test_counts_that_are_gone_are_not_taken_for_none(spark: SparkSession, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'queue.db'}"
    with Queue.open(url, "orders") as queue:
        gone = (
            "AFTER UPDATE ON duequeue_stream_commit BEGIN DELETE FROM duequeue_stream_commit; END"
        )
        ask(url, f"CREATE TRIGGER gone {gone}")
        with pytest.raises(StoreError, match="its counts are missing"):
            offer(messages(spark, 10), url=url, queue="orders")
        assert queue.stats().total == 10


def test_one_key_has_nearly_all_rows(spark: SparkSession, url: str, queue: Queue[Any]) -> None:
    skewed = messages(spark, 1000).selectExpr(
        "if(key < 'k9', 'hot', key) AS key", "payload", "due_at"
    )
    counts = offer(skewed, url=url, queue="orders", batchSize=100)
    cold = sum(f"k{number}" >= "k9" for number in range(1000))
    assert counts.created == queue.stats().due == 1 + cold
    assert sum(counts) == 1000
