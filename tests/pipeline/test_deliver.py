"""`deliver`: messages handled on executors, acked at commit; failures settled apart."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from duequeue import Backoff, Bury, Message, Outcome, Queue
from duequeue.pipeline import Delivered, Received, ToQueue, deliver
from tests.fixtures.stores import on_every_bulk_store
from tests.spark.frames import PAST, session_in


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return tmp_path / "checkpoint"


def fill(url: str, count: int, first: int = 0) -> None:
    with Queue.open(url, "orders") as queue:
        numbers = range(first, first + count)
        queue.offer_batch(Message(f"k{number}", {"n": number}, PAST) for number in numbers)


@on_every_bulk_store
def test_each_message_has_its_own_outcome(
    spark: SparkSession, url: str, checkpoint: Path, tmp_path: Path
) -> None:
    def handler(batch: list[Received]) -> list[Any]:
        if any(each.payload["n"] == 7 for each in batch):
            raise RuntimeError("poison")
        return [Bury("unlucky") if each.payload["n"] == 13 else each.payload for each in batch]

    results = tmp_path / "results"
    given: dict[str, Any] = {
        "url": url,
        "queue": "orders",
        "handler": handler,
        "checkpoint": checkpoint,
        "results": results,
        "batch": 10,
        "backoff": Backoff(first=timedelta(hours=1)),
        "history": "true",
    }
    fill(url, 40)
    assert deliver(spark, **given) == Delivered(acked=38, released=1, buried=1)
    fill(url, 2, first=40)
    assert deliver(spark, **given) == Delivered(acked=2)
    handled = spark.read.parquet(str(results)).collect()
    assert sorted(row.key for row in handled) == sorted(
        f"k{number}" for number in range(42) if number not in {7, 13}
    )
    assert all(row.result == row.payload and row.attempt == 1 for row in handled)
    with Queue.open(url, "orders") as queue:
        stats = queue.stats()
        assert (stats.future, stats.due, stats.leased, stats.buried) == (1, 0, 0, 1)
        assert [each.reason for each in queue.buried(2)] == ["unlucky"]
        released = queue.read("k7")
        assert released is not None
        assert released.attempts == 1
        outcomes = [each.outcome for each in queue.history(100)]
        assert (outcomes.count(Outcome.ACKED), outcomes.count(Outcome.BURIED)) == (40, 1)
        assert all(each.handler_time is not None for each in queue.history(100))


def test_results_go_to_another_queue(spark: SparkSession, url: str, checkpoint: Path) -> None:
    fill(url, 4)
    done = deliver(
        spark,
        url=url,
        queue="orders",
        handler=lambda batch: [each.payload["n"] or None for each in batch],
        checkpoint=checkpoint,
        results=ToQueue(url, "bills"),
    )
    assert done == Delivered(acked=4)
    with Queue.open(url, "bills") as bills:
        assert {each.key: each.payload for each in bills.try_poll_many(9)} == {
            "k1": 1,
            "k2": 2,
            "k3": 3,
        }


def test_results_into_the_queue_that_is_read_are_refused(
    spark: SparkSession, url: str, checkpoint: Path
) -> None:
    fill(url, 1)
    with pytest.raises(ValueError, match="the job would never end"):
        deliver(
            spark,
            url=url,
            queue="orders",
            handler=print,
            checkpoint=checkpoint,
            results=ToQueue(url, "orders"),
        )
    with Queue.open(url, "orders") as queue:
        assert queue.stats().due == 1


def test_after_so_many_attempts_it_is_buried(
    spark: SparkSession, url: str, checkpoint: Path
) -> None:
    def handler(batch: list[Received]) -> None:
        raise RuntimeError("never works")

    fill(url, 1)
    done = deliver(
        spark, url=url, queue="orders", handler=handler, checkpoint=checkpoint, max_attempts=1
    )
    assert done == Delivered(buried=1)
    with Queue.open(url, "orders") as queue:
        assert "RuntimeError: never works" in queue.buried(1)[0].reason


def test_a_backoff_that_raises_releases_the_message_at_once(
    spark: SparkSession, url: str, checkpoint: Path
) -> None:
    class BrokenBackoff(Backoff):  # here, because executors cannot import this module
        def delay(self, attempt: int) -> timedelta:
            raise RuntimeError(f"no delay after attempt {attempt}")

    def handler(batch: list[Received]) -> None:
        if any(each.payload["n"] == 1 for each in batch):
            raise RuntimeError("poison")

    fill(url, 3)
    done = deliver(
        spark,
        url=url,
        queue="orders",
        handler=handler,
        checkpoint=checkpoint,
        backoff=BrokenBackoff(),
    )
    assert done == Delivered(acked=2, released=1)
    with Queue.open(url, "orders") as queue:
        released = queue.try_poll()
        assert released is not None
        assert (released.key, released.attempt) == ("k1", 2)


def test_what_was_delivered_often_enough_is_not_handed_over(
    spark: SparkSession, url: str, checkpoint: Path
) -> None:
    fill(url, 1)
    with Queue.open(url, "orders") as queue:
        for _ in range(2):
            delivery = queue.try_poll()
            assert delivery is not None
            delivery.release()
        done = deliver(
            spark, url=url, queue="orders", handler=print, checkpoint=checkpoint, max_attempts=2
        )
        assert done == Delivered(buried=1)
        (buried,) = queue.buried(2)
        assert (buried.attempts, buried.reason) == (
            2,
            "max_attempts: delivered 2 times without an ack",
        )


def test_handlers_see_instants_in_utc(
    spark: SparkSession, tmp_path: Path, checkpoint: Path
) -> None:
    """Also the first one, which no datetime holds in a zone west of there."""
    url, first = f"sqlite:///{tmp_path}/queue.db", datetime.min.replace(tzinfo=UTC)
    with Queue.open(url, "orders") as queue:
        queue.offer("first", 1, first)
    with session_in(spark, "America/New_York"):
        done = deliver(
            spark,
            url=url,
            queue="orders",
            handler=lambda batch: [each.due_at.isoformat() for each in batch],
            checkpoint=checkpoint,
            results=ToQueue(url, "instants"),
        )
    assert done == Delivered(acked=1)
    with Queue.open(url, "instants") as instants:
        assert [each.payload for each in instants.try_poll_many(2)] == [first.isoformat()]


def test_a_worker_that_dies_loses_nothing(
    spark: SparkSession, tmp_path: Path, checkpoint: Path
) -> None:
    url, died = f"sqlite:///{tmp_path / 'queue.db'}", tmp_path / "died"

    def handler(batch: list[Received]) -> None:
        if not died.exists():
            died.touch()
            os._exit(1)

    fill(url, 30)
    given: dict[str, Any] = {"url": url, "queue": "orders", "checkpoint": checkpoint}
    given |= {"handler": handler, "results": tmp_path / "results", "batch": 10}
    with pytest.raises(PySparkException):
        deliver(spark, **given)
    assert deliver(spark, **given) == Delivered(acked=30)
    keys = [row.key for row in spark.read.parquet(str(tmp_path / "results")).collect()]
    assert len(keys) == len(set(keys)) == 30
    with Queue.open(url, "orders") as queue:
        assert queue.stats().total == 0


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"batch": 0}, "batch must be a whole number above 0"),
        ({"max_attempts": 0}, "max_attempts must be a whole number above 0"),
        ({"codec": "pickle"}, "codec must be one of json, text, bytes"),
        ({"leese": "5 minutes"}, "did you mean 'lease'"),
        ({"url": "memory:"}, "other processes cannot reach"),
        ({"results": ToQueue("ftp://x", "bills")}, "names no store"),
    ],
)
def test_bad_arguments(
    spark: SparkSession, tmp_path: Path, checkpoint: Path, wrong: dict[str, Any], words: str
) -> None:
    given: dict[str, Any] = {"url": f"sqlite:///{tmp_path / 'queue.db'}", "queue": "orders"}
    given |= {"handler": print, "checkpoint": checkpoint, **wrong}
    with pytest.raises(ValueError, match=words):
        deliver(spark, **given)


def test_passwords_stay_out_of_sight() -> None:
    assert "secret" not in repr(ToQueue("postgresql://me:secret@host/db", "bills"))
