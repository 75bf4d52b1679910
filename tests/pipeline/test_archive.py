"""`archive`: whole days move from the database into Parquet, each row once."""

import fcntl
import json
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import unix_millis

from duequeue import DayBounds, History, ManualClock, Queue
from duequeue.contract.fixtures import START
from duequeue.pipeline import Archived, archive
from duequeue.pipeline import folder as folders
from duequeue.pipeline.archiving.batches import Batches, Manifest
from duequeue.pipeline.folder import Folder
from duequeue.pipeline.history_frames import archived_rows
from duequeue.pipeline.history_source import HistoryPartition, HistoryReader, IdRange, id_ranges
from tests.fixtures.stores import on_every_bulk_store
from tests.pipeline.settling import in_archive, in_database, settle

DAY = timedelta(days=1)
FIRST = "2026-03-01"


@on_every_bulk_store
def test_days_that_are_over_move_into_the_archive(
    spark: SparkSession, url: str, queue: Queue[Any], folder: Path, clock: ManualClock
) -> None:
    settle(queue, "a", "b")
    for name in ("007", "_50% a/b=c"):
        with Queue.open(url, name, codec=str, clock=clock, history=True) as other:
            settle(other, "c")
    clock.advance(DAY)
    settle(queue, "d")
    done = archive(spark, url=url, folder=folder, clock=clock)
    assert done == Archived(str(folder), 4, [START.date()], [])
    assert in_archive(spark, folder) == [
        (FIRST, "007", "c"),
        (FIRST, "_50% a/b=c", "c"),
        (FIRST, "orders", "a"),
        (FIRST, "orders", "b"),
    ]
    assert in_database(url) == ["d"]
    assert {each.name for each in folder.iterdir()} == {"_lock", f"day={FIRST}"}
    (manifest,) = (folder / f"day={FIRST}").glob("_manifest-*.json")
    assert json.loads(manifest.read_text())["rows_by_queue"] == {
        "007": 1,
        "_50% a/b=c": 1,
        "orders": 2,
    }
    assert archive(spark, url=url, folder=folder, clock=clock) == Archived(str(folder), 0, [], [])


def test_a_row_is_archived_as_it_was(
    spark: SparkSession, url: str, queue: Queue[Any], folder: Path, clock: ManualClock
) -> None:
    queue.offer("a", "x", START - timedelta(milliseconds=5))
    delivery = queue.try_poll()
    assert delivery is not None
    clock.advance(timedelta(milliseconds=7))
    assert delivery.bury("no such customer")
    queue.offer("b", "x")
    queue.drop("b")
    clock.advance(DAY)
    archive(spark, url=url, folder=folder, clock=clock)
    rows = archived_rows(spark, Folder(spark, folder), date.min, date.max).orderBy("key")
    instants = [unix_millis(name) for name in ("due_at", "delivered_at", "settled_at")]
    start = int(START.timestamp() * 1000)
    assert [
        tuple(row) for row in rows.select("key", "type", "outcome", "attempts", *instants).collect()
    ] == [
        ("a", "json", "buried", 1, start - 5, start, start + 7),
        ("b", "json", "dropped", 0, start + 7, None, start + 7),
    ]


def test_today_is_left_alone_unless_asked_for(
    spark: SparkSession, url: str, queue: Queue[Any], folder: Path, clock: ManualClock
) -> None:
    settle(queue, "a")
    assert archive(spark, url=url, folder=folder, clock=clock).rows == 0
    assert archive(spark, url=url, folder=folder, clock=clock, include_today=True).rows == 1
    settle(queue, "b")
    assert in_database(url) == ["b"]
    assert archive(spark, url=url, folder=folder, clock=clock, include_today=True).rows == 1
    assert in_archive(spark, folder) == [(FIRST, "orders", "a"), (FIRST, "orders", "b")]
    assert in_database(url) == []


@on_every_bulk_store
def test_what_is_settled_meanwhile_is_not_lost(
    spark: SparkSession,
    url: str,
    queue: Queue[Any],
    folder: Path,
    clock: ManualClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settle(queue, "a")
    seal = Batches.seal

    def seal_while_others_settle(batches: Batches, manifest: Manifest) -> None:
        settle(queue, "meanwhile")
        seal(batches, manifest)

    monkeypatch.setattr(Batches, "seal", seal_while_others_settle)
    assert archive(spark, url=url, folder=folder, clock=clock, include_today=True).rows == 1
    assert in_archive(spark, folder) == [(FIRST, "orders", "a")]
    assert in_database(url) == ["meanwhile"]


@on_every_bulk_store
def test_rows_that_come_late_for_a_day_follow(
    spark: SparkSession,
    url: str,
    queue: Queue[Any],
    folder: Path,
    clock: ManualClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A process whose clock lags settles into a day that is over, between copy and removal."""
    settle(queue, "a")
    late, seal = ["late"], Batches.seal

    def seal_while_others_settle(batches: Batches, manifest: Manifest) -> None:
        if late:
            settle(queue, late.pop())
        seal(batches, manifest)

    monkeypatch.setattr(Batches, "seal", seal_while_others_settle)
    done = archive(spark, url=url, folder=folder, clock=ManualClock(START + DAY))
    assert done == Archived(str(folder), 2, [START.date()], [])
    assert in_archive(spark, folder) == [(FIRST, "orders", "a"), (FIRST, "orders", "late")]
    assert in_database(url) == []
    assert len(list((folder / f"day={FIRST}").glob("_manifest-*.json"))) == 2


def test_a_day_that_keeps_changing_is_left_for_the_next_run(
    spark: SparkSession,
    url: str,
    queue: Queue[Any],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settle(queue, "a")
    monkeypatch.setattr("duequeue.pipeline.archiving.job.MOST_ROUNDS", 1)
    with monkeypatch.context() as patched:
        seal = Batches.seal

        def seal_while_others_settle(batches: Batches, manifest: Manifest) -> None:
            settle(queue, "late")
            seal(batches, manifest)

        patched.setattr(Batches, "seal", seal_while_others_settle)
        done = archive(spark, url=url, folder=folder, clock=ManualClock(START + DAY))
    assert (done.rows, done.unfinished) == (1, [START.date()])
    assert archive(spark, url=url, folder=folder, clock=ManualClock(START + DAY)).rows == 1
    assert in_archive(spark, folder) == [(FIRST, "orders", "a"), (FIRST, "orders", "late")]
    assert in_database(url) == []


@pytest.mark.parametrize("url", ["postgres"], indirect=True)
def test_a_row_that_commits_late_under_an_early_id_is_not_lost(
    spark: SparkSession, url: str, queue: Queue[Any], folder: Path, clock: ManualClock
) -> None:
    settle(queue, "a", "b")
    queue.offer("late", "x")
    with psycopg.connect(url) as connection:
        delivery = queue.within(connection).try_poll()
        assert delivery is not None
        delivery.ack()  # its row has an id, and is seen by nobody yet
        settle(queue, "c")
        assert archive(spark, url=url, folder=folder, clock=clock, include_today=True).rows == 3
    assert in_database(url) == ["late"]
    assert archive(spark, url=url, folder=folder, clock=clock, include_today=True).rows == 1
    assert [key for _, _, key in in_archive(spark, folder)] == ["a", "b", "c", "late"]


@pytest.mark.parametrize("url", ["postgres"], indirect=True)
def test_counted_rows_stay_if_another_has_come_between_them(
    url: str, queue: Queue[Any], clock: ManualClock
) -> None:
    settle(queue, "a")
    queue.offer("late", "x")
    with psycopg.connect(url) as connection, History.open(url, clock=clock) as history:
        delivery = queue.within(connection).try_poll()
        assert delivery is not None
        delivery.ack()
        settle(queue, "b")
        bounds = history.day_bounds(START.date())
        connection.commit()
        assert bounds.rows == 2
        assert not history.remove_rows(START.date(), bounds)
    assert in_database(url) == ["a", "b", "late"]


def test_rows_that_do_not_add_up_are_not_archived(
    spark: SparkSession,
    url: str,
    queue: Queue[Any],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settle(queue, "a", "b")
    count = History.day_bounds

    def one_more(history: History, day: date) -> DayBounds:
        bounds = count(history, day)
        return bounds._replace(rows=bounds.rows + 1)

    monkeypatch.setattr(History, "day_bounds", one_more)
    done = archive(spark, url=url, folder=folder, clock=ManualClock(START + DAY))
    assert (done.rows, done.unfinished) == (0, [START.date()])
    monkeypatch.undo()
    assert in_archive(spark, folder) == []
    assert in_database(url) == ["a", "b"]


def test_what_is_sealed_reaches_the_disk_before_the_seal(
    spark: SparkSession,
    tmp_path: Path,
    folder: Path,
    clock: ManualClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url = f"sqlite:///{tmp_path / 'queue.db'}"
    for name in ("orders", "_50% a/b=c"):
        with Queue.open(url, name, clock=clock, history=True) as queue:
            settle(queue, "a")
    clock.advance(DAY)
    on_disk: list[Path] = []
    sealed: list[set[Path]] = []

    def write(self: Folder, name: str, content: bytes) -> None:
        staged = {folder / "_staging", *(folder / "_staging").rglob("*")}
        assert [each.name for each in staged if each.suffix == ".parquet"]
        assert staged - set(on_disk) == set(), "would not outlive a loss of power"
        sealed.append(staged)
        real_write(self, name, content)
        assert on_disk.index(folder / f"{name}.half") < on_disk.index(folder / name)

    real_write = Folder.write
    monkeypatch.setattr(folders, "_to_disk", on_disk.append)
    monkeypatch.setattr(Folder, "write", write)
    archive(spark, url=url, folder=folder, clock=clock)
    assert len(sealed) == 1


def test_parts_of_a_day_have_each_row_once(url: str, queue: Queue[Any]) -> None:
    keys = [f"{number:02}" for number in range(25)]
    settle(queue, *keys)
    with History.open(url) as history:
        bounds = history.day_bounds(START.date())
    reader = HistoryReader(url, START.date(), bounds, ["key"])
    ranges = id_ranges(bounds, most_rows=10)
    assert len(ranges) == 3
    found = [
        key
        for each in ranges
        for batch in reader.read(HistoryPartition(each))
        for key in batch["key"].to_pylist()
    ]
    assert sorted(found) == keys


def test_ranges_of_ids() -> None:
    assert id_ranges(DayBounds(5, 14, 10), 4) == [IdRange(4, 7), IdRange(7, 10), IdRange(10, 14)]
    assert id_ranges(DayBounds(7, 7, 1), 100) == [IdRange(6, 7)]
    assert id_ranges(DayBounds(1, 1_000_000, 2), 1) == [
        IdRange(0, 500_000),
        IdRange(500_000, 10**6),
    ]


def test_nothing_was_settled(spark: SparkSession, url: str, folder: Path) -> None:
    assert archive(spark, url=url, folder=folder) == Archived(str(folder), 0, [], [])
    assert in_archive(spark, folder) == []


def test_two_at_once_do_not_mix(spark: SparkSession, tmp_path: Path, folder: Path) -> None:
    folder.mkdir()
    with (folder / "_lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(ValueError, match="another process is writing into folder"):
            archive(spark, url=f"sqlite:///{tmp_path}/queue.db", folder=folder)


def test_bad_input_is_refused(spark: SparkSession, tmp_path: Path, folder: Path) -> None:
    with pytest.raises(ValueError, match="other processes cannot reach"):
        archive(spark, url="memory:", folder=folder)
    for name in ("", "history[1]", "day=*"):
        with pytest.raises(ValueError, match="folder must be a path"):
            archive(spark, url=f"sqlite:///{tmp_path}/queue.db", folder=name)
    assert not folder.exists()
