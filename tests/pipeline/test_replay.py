"""`replay`: archived messages come again, filtered, at new times."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from duequeue import ManualClock, Queue
from duequeue.bulk.port import OfferCounts
from duequeue.contract.fixtures import START
from duequeue.contract.phrases import DAY
from duequeue.pipeline import Replayed, archive, replay
from duequeue.pipeline.replaying import replayable, rows_of
from tests.fixtures.stores import on_redis_too
from tests.pipeline.settling import settle
from tests.spark.frames import PAST, SCHEMA, later, rows


@on_redis_too
def test_what_was_archived_comes_again(spark: SparkSession, url: str, tmp_path: Path) -> None:
    values = [(f"k{number}", str(number), PAST, {"h": "x"}) for number in range(10)]
    archived = rows(spark, values, f"{SCHEMA}, headers map<string,string>")
    source = tmp_path / "archive"
    archived.write.parquet(str(source))
    given: dict[str, Any] = {"url": url, "queue": "orders"}
    given |= {"where": "payload >= 3", "due": "due_at + INTERVAL 1 DAY"}
    assert replay(spark, source, **given) == Replayed(OfferCounts(created=7))
    assert replay(spark, source, **given) == Replayed(OfferCounts(ignored=7))
    with Queue.open(url, "orders") as queue:
        found = queue.try_poll_many(20)
        assert {each.payload for each in found} == set(range(3, 10))
        assert {each.due_at for each in found} == {datetime(2020, 1, 2, tzinfo=UTC)}
        assert found[0].headers == {"h": "x"}


def test_a_queue_whose_name_looks_like_a_number_is_text(
    spark: SparkSession, url: str, clock: ManualClock, folder: Path
) -> None:
    with Queue.open(url, "007", clock=clock, history=True) as queue:
        settle(queue, "a")
    archive(spark, url=url, folder=folder, clock=ManualClock(START + DAY))
    with rows_of(spark, folder) as frame:
        assert [row.queue for row in frame.collect()] == ["007"]


def test_of_a_key_that_is_there_twice_the_last_counts(spark: SparkSession) -> None:
    frame = rows(spark, [("a", "2", later(2)), ("a", "1", later(1)), ("b", "3", PAST)])
    found = replayable(frame, "true", "due_at", "payload").collect()
    assert {row.key: row.payload for row in found} == {"a": "2", "b": "3"}


def test_a_history_says_what_its_payloads_were(spark: SparkSession) -> None:
    frame = rows(spark, [("a", PAST)], "key string, settled_at timestamp")
    with pytest.raises(ValueError, match="archive has no column 'payload', because a history"):
        replayable(frame, "true", "now()", "payload")
    (row,) = replayable(frame, "true", "now()", "to_json(struct(key AS order))").collect()
    assert row.payload == '{"order":"a"}'


def test_bad_arguments_are_named(spark: SparkSession, tmp_path: Path) -> None:
    frame = rows(spark, [("a", "1", PAST)])
    for wrong, words in (
        ({"where": "colour = 'red'"}, "where is not valid SQL over the archive's columns"),
        ({"due": "soon"}, "due is not valid SQL over the archive's columns"),
    ):
        expressions = {"where": "true", "due": "now()", "payload": "payload", **wrong}
        with pytest.raises(ValueError, match=words):
            replayable(frame, **expressions)
    with pytest.raises(ValueError, match="does not exist, or contains no Parquet files"):
        replay(spark, tmp_path / "nothing", url=f"sqlite:///{tmp_path / 'q.db'}", queue="orders")
