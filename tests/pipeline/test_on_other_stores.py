"""The jobs of the pipeline on a queue in MariaDB or Redis: deliver, archive, report and migrate."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from duequeue import Bury, ManualClock, Message, Queue
from duequeue.contract.fixtures import START
from duequeue.pipeline import (
    Archived,
    Delivered,
    Migrated,
    Received,
    archive,
    deliver,
    migrate,
    report,
)
from tests.fixtures.stores import fresh_url
from tests.pipeline.settling import in_archive, settle
from tests.spark.frames import FUTURE, PAST

DAY = timedelta(days=1)


@pytest.fixture(params=["mariadb", "redis"])
def url(request: pytest.FixtureRequest) -> str:
    """An empty database."""
    return fresh_url(request.param, request)


def test_each_message_has_its_own_outcome(spark: SparkSession, url: str, tmp_path: Path) -> None:
    def handler(batch: list[Received]) -> list[Any]:
        return [Bury("unlucky") if each.payload == 13 else None for each in batch]

    with Queue.open(url, "orders") as queue:
        queue.offer_batch(Message(f"k{number}", number, PAST) for number in range(40))
        done = deliver(
            spark,
            url=url,
            queue="orders",
            handler=handler,
            checkpoint=tmp_path / "c",
            history="true",
        )
        assert done == Delivered(acked=39, buried=1)
        assert queue.stats().total == 0
        assert [each.reason for each in queue.buried(2)] == ["unlucky"]


def test_days_move_into_the_archive_and_into_the_report(
    spark: SparkSession,
    url: str,
    queue: Queue[Any],
    folder: Path,
    clock: ManualClock,
    tmp_path: Path,
) -> None:
    settle(queue, "a", "b")
    clock.advance(DAY)
    settle(queue, "c")
    done = archive(spark, url=url, folder=folder, clock=clock)
    assert done == Archived(str(folder), 2, [START.date()], [])
    assert [key for _, _, key in in_archive(spark, folder)] == ["a", "b"]
    assert [row.key for row in queue.history(10)] == ["c"]
    made = report(spark, archive=folder, url=url, folder=tmp_path / "report", clock=clock)
    assert made.settled == 3


@pytest.fixture(params=["sqlite to redis", "redis to mariadb", "mariadb to sqlite"])
def ends(request: pytest.FixtureRequest) -> tuple[str, str]:
    """Each of these stores as a source and as a target."""
    source, _, target = request.param.partition(" to ")
    return fresh_url(source, request), fresh_url(target, request)


def test_a_queue_moves_from_store_to_store(
    spark: SparkSession, ends: tuple[str, str], tmp_path: Path
) -> None:
    source, target = ends
    with Queue.open(source, "orders") as old, Queue.open(target, "orders") as new:
        old.offer_batch(Message(f"due{number}", number, PAST) for number in range(20))
        old.offer("future", {"a": 1}, FUTURE, headers={"trace": "7"})
        moved = migrate(
            spark, source=source, target=target, queue="orders", checkpoint=tmp_path / "checkpoint"
        )
        assert moved == Migrated(moved=21, left=0)
        assert (old.stats().total, new.stats().due, new.stats().future) == (0, 20, 1)
        future = new.read("future")
        assert future is not None
        assert (future.payload, future.due_at, future.headers) == ({"a": 1}, FUTURE, {"trace": "7"})
