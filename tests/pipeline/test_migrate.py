"""`migrate`: a queue moves between databases while both are in use."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from duequeue import Message, Queue
from duequeue.codec import BytesCodec
from duequeue.pipeline import Migrated, migrate, migrating, streaming_query
from tests.fixtures.stores import fresh_url
from tests.pipeline.test_deliver_reset import cut
from tests.spark.frames import FUTURE, PAST


class Ends(NamedTuple):
    """Both databases, and the queue at each."""

    source: str
    target: str
    old: Queue[Any]
    new: Queue[Any]


class Unchecked(BytesCodec):
    """Puts any bytes where JSON should be."""

    type_name = "json"


@pytest.fixture(params=["sqlite to postgres", "postgres to mariadb", "mariadb to sqlite"])
def ends(request: pytest.FixtureRequest) -> Iterator[Ends]:
    """Each direction."""
    source, _, target = request.param.partition(" to ")
    urls = fresh_url(source, request), fresh_url(target, request)
    with Queue.open(urls[0], "orders") as old, Queue.open(urls[1], "orders") as new:
        yield Ends(*urls, old, new)


def move(spark: SparkSession, ends: Ends, tmp_path: Path, **options: Any) -> Migrated:
    return migrate(
        spark,
        source=ends.source,
        target=ends.target,
        queue="orders",
        checkpoint=tmp_path / "checkpoint",
        **options,
    )


def test_everything_moves_but_what_is_held(spark: SparkSession, ends: Ends, tmp_path: Path) -> None:
    ends.old.offer("held", "by a consumer", PAST)
    held = ends.old.try_poll()
    assert held is not None
    ends.old.offer_batch(Message(f"due{number}", number, PAST) for number in range(20))
    ends.old.offer("future", {"a": 1}, FUTURE, headers={"trace": "7"})
    assert move(spark, ends, tmp_path) == Migrated(moved=21, left=1)
    assert ends.old.stats().leased == ends.old.stats().total == 1
    assert held.extend(), "its holder has lost nothing"
    assert ends.new.stats().due == 20
    future = ends.new.read("future")
    assert future is not None
    assert (future.payload, future.due_at, future.headers) == ({"a": 1}, FUTURE, {"trace": "7"})
    assert held.release()
    ends.old.offer("late", 1, PAST)
    assert move(spark, ends, tmp_path) == Migrated(moved=2, left=0)
    assert ends.new.contains("held")
    assert ends.new.contains("late")


def test_payloads_move_as_they_are(spark: SparkSession, ends: Ends, tmp_path: Path) -> None:
    with Queue.open(ends.source, "orders", codec=Unchecked()) as unchecked:
        unchecked.offer("bad", b"no \xff JSON", PAST)
    ends.old.offer("good", 1, PAST)
    assert move(spark, ends, tmp_path) == Migrated(moved=2, left=0)
    with Queue.open(ends.target, "orders", codec=Unchecked()) as unchecked:
        found = {each.key: each.payload for each in unchecked.try_poll_many(9)}
    assert found == {"bad": b"no \xff JSON", "good": b"1"}


def test_what_is_offered_after_a_round_moves_in_the_next(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = (f"sqlite:///{tmp_path / name}" for name in ("old.db", "new.db"))
    rounds: list[int] = []
    real = streaming_query.run_query

    def run_and_offer(*arguments: Any, **options: Any) -> None:
        real(*arguments, **options)
        rounds.append(old.stats().total)
        if len(rounds) == 1:
            old.offer("late", 1, FUTURE)

    monkeypatch.setattr(migrating, "run_query", run_and_offer)
    with Queue.open(source, "orders") as old, Queue.open(target, "orders") as new:
        old.offer("held", 1)
        assert old.try_poll() is not None
        assert move(spark, Ends(source, target, old, new), tmp_path) == Migrated(moved=1, left=1)
        assert new.contains("late")
    assert rounds == [1, 1], "and then no more, though one is held"


def test_of_a_key_that_both_have_one_counts(
    spark: SparkSession, ends: Ends, tmp_path: Path
) -> None:
    for queue, words in ((ends.old, "old"), (ends.new, "new")):
        queue.offer("k", words, PAST)
    assert move(spark, ends, tmp_path, switched=True) == Migrated(moved=1, left=0)
    kept = ends.new.read("k")
    assert kept is not None
    assert kept.payload == "new"
    ends.old.offer("k", "moved to another day", PAST + timedelta(days=1))
    move(spark, ends, tmp_path)
    replaced = ends.new.read("k")
    assert replaced is not None
    assert replaced.payload == "moved to another day"


@pytest.mark.parametrize("damaged", ["offsets/0", "commits/0", "metadata"])
def test_a_damaged_checkpoint_is_told_of_in_one_sentence_and_can_be_reset(
    spark: SparkSession, tmp_path: Path, damaged: str
) -> None:
    source, target = (f"sqlite:///{tmp_path / name}" for name in ("old.db", "new.db"))
    with Queue.open(source, "orders") as old, Queue.open(target, "orders") as new:
        ends = Ends(source, target, old, new)
        old.offer("first", 1, FUTURE)
        assert move(spark, ends, tmp_path) == Migrated(moved=1, left=0)
        consumer = (tmp_path / "checkpoint" / "duequeue-consumer").read_text()
        cut(damaged)(tmp_path / "checkpoint")
        old.offer("second", 1, FUTURE)
        with pytest.raises(ValueError, match="is damaged or missing: run again with res") as told:
            move(spark, ends, tmp_path)
        assert "\n" not in str(told.value)
        assert (old.stats().future, old.stats().leased) == (1, 0)
        assert move(spark, ends, tmp_path, reset_checkpoint=True) == Migrated(moved=1, left=0)
        old.offer("third", 1, FUTURE)
        assert move(spark, ends, tmp_path) == Migrated(moved=1, left=0), "and so it goes on"
        assert (old.stats().total, new.stats().future) == (0, 3)
        assert (tmp_path / "checkpoint" / "duequeue-consumer").read_text() == consumer


def test_a_queue_is_not_moved_onto_itself(spark: SparkSession, tmp_path: Path) -> None:
    url, same = f"sqlite:///{tmp_path}/queue.db", f"sqlite:///{tmp_path}/./queue.db"
    with Queue.open(url, "orders") as queue:
        queue.offer("k", 1, PAST)
        with pytest.raises(ValueError, match="target must be another database than source"):
            migrate(spark, source=url, target=same, queue="orders", checkpoint=tmp_path)
        assert queue.contains("k")
