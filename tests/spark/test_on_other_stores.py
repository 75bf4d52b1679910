"""Spark writes to a queue on MariaDB or Redis, reads it, and streams into it and out of it."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from duequeue import Queue
from duequeue.spark import OfferCounts, StreamCounts, offer, stream_counts
from tests.fixtures.stores import fresh_url, on_redis_too
from tests.spark.frames import FUTURE, PAST, messages, rows
from tests.spark.streams import in_files, run_through, stream, to_files
from tests.spark.test_stream_write import Inbox, forget_last_commit, into


@pytest.fixture(params=["mariadb", "redis"])
def url(request: pytest.FixtureRequest) -> str:
    """An empty database."""
    return fresh_url(request.param, request)


def test_a_frame_is_offered_and_read_again(
    spark: SparkSession, url: str, queue: Queue[Any]
) -> None:
    frame = messages(spark, 2500, "timestamp'2100-01-01'")
    assert offer(frame, url=url, queue="orders") == OfferCounts(created=2500)
    assert offer(frame, url=url, queue="orders") == OfferCounts(ignored=2500)
    offer(rows(spark, [("due", "1", PAST)]), url=url, queue="orders")
    found = spark.read.format("duequeue").options(url=url, queue="orders").load()
    assert found.count() == found.select("key").distinct().count() == 2501
    (row,) = found.where("key = 'due'").collect()
    assert (row.payload, row.due_at, row.attempt) == ("1", row.deliver_at, 0)
    assert [each.key for each in queue.try_poll_many(5)] == ["due"]


def test_a_stream_out_of_the_queue_acks_what_it_committed(
    spark: SparkSession, url: str, queue: Queue[Any], tmp_path: Path
) -> None:
    offer(messages(spark, 2500), url=url, queue="orders")
    queue.offer("later", 1, FUTURE)
    run_through(to_files(stream(spark, url, maxMessagesPerTrigger="1200"), tmp_path))
    assert in_files(spark, tmp_path) == sorted(f"k{number}" for number in range(2500))
    assert queue.stats().total == 1


def test_a_stream_into_the_queue_offers_a_replayed_batch_once(
    spark: SparkSession, url: str, queue: Queue[Any], tmp_path: Path
) -> None:
    inbox = Inbox(spark, tmp_path)
    inbox.put("first", [{"key": f"k{each}", "payload": "1"} for each in range(30)])
    run_through(into(inbox.frame(), url, tmp_path))
    assert queue.ack_many(queue.try_poll_many(100)) == 30
    forget_last_commit(tmp_path)
    inbox.put("second", [{"key": "more", "payload": "1"}])
    run_through(into(inbox.frame(), url, tmp_path))
    assert [each.key for each in queue.try_poll_many(100)] == ["more"]


@on_redis_too
def test_rows_of_a_stream_with_the_same_key_are_all_counted(
    spark: SparkSession, url: str, queue: Queue[Any], tmp_path: Path
) -> None:
    inbox = Inbox(spark, tmp_path)
    for number in range(2):
        rows = [{"key": f"k{each % 3}", "payload": f"{number}"} for each in range(10)]
        inbox.put(f"{number}", rows)
        run_through(into(inbox.frame(), url, tmp_path, txnAppId="me"))
    counts = stream_counts(url=url, queue="orders", app="me")
    assert counts == StreamCounts(1, OfferCounts(created=3, updated=3, ignored=14))
