"""Other programs read the files of an archive, and skip the parts that they do not need."""

import json
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow.compute as pc
import pyarrow.dataset
import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession

from duequeue import ManualClock, Queue
from duequeue.contract.fixtures import START
from duequeue.pipeline import archive
from duequeue.pipeline.archiving import layout
from duequeue.pipeline.folder import Folder
from duequeue.pipeline.history_frames import archived_rows
from tests.pipeline.settling import in_archive, settle

MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
FIRST = "2026-03-01"


@pytest.fixture
def url(tmp_path: Path) -> str:
    """One kind of database, because the files are the same for each."""
    return f"sqlite:///{tmp_path / 'queue.db'}"


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("day=*/queue=*/*.parquet"))


def test_files_are_sorted_and_compressed_and_have_statistics(
    spark: SparkSession, url: str, queue: Queue[Any], folder: Path, clock: ManualClock
) -> None:
    with Queue.open(url, "invoices", clock=clock, history=True) as other:
        for number in range(3):
            settle(queue, f"a{number}")
            settle(other, f"b{number}")
            clock.advance(MINUTE)
    archive(spark, url=url, folder=folder, clock=ManualClock(START + DAY))
    assert [file.parent.name for file in files(folder)] == ["queue=invoices", "queue=orders"]
    for file in files(folder):
        opened = pyarrow.parquet.ParquetFile(file)
        place = opened.schema_arrow.get_field_index("settled_at")
        column = opened.metadata.row_group(0).column(place)
        logical = json.loads(opened.schema.column(place).logical_type.to_json())
        assert column.physical_type == "INT64"
        assert (logical["isAdjustedToUTC"], logical["timeUnit"]) == (True, "microseconds")
        assert column.compression == "ZSTD"
        settled = opened.read()["settled_at"].to_pylist()
        assert settled == sorted(settled)
        assert (column.statistics.min, column.statistics.max) == (settled[0], settled[-1])


@pytest.fixture
def large_day(
    spark: SparkSession,
    url: str,
    queue: Queue[Any],
    folder: Path,
    clock: ManualClock,
    monkeypatch: pytest.MonkeyPatch,
) -> datetime:
    """An archive with several row groups, and the instant at which its last part began."""
    monkeypatch.setattr(layout, "GROUP_BYTES", 1024)
    for part in range(6):
        settle(queue, *(f"{part}-{number}" for number in range(100)))
        clock.advance(MINUTE)
    archive(spark, url=url, folder=folder, clock=ManualClock(START + DAY))
    return clock.now() - MINUTE


def test_readers_skip_row_groups(folder: Path, large_day: datetime) -> None:
    rows = pyarrow.dataset.dataset(folder, partitioning="hive")
    late = pc.field("settled_at") >= pc.scalar(large_day)
    (fragment,) = rows.get_fragments()
    assert len(fragment.row_groups) > 2
    assert len(fragment.subset(late).row_groups) <= len(fragment.row_groups) / 2
    assert rows.count_rows(filter=late) == 100


def test_duckdb_and_polars_read_an_archive(folder: Path, large_day: datetime) -> None:
    pattern = str(folder / "*" / "*" / "*.parquet")
    relation = duckdb.connect().execute(
        "SELECT queue, CAST(day AS text), count(*) FROM read_parquet(?, hive_partitioning = true) "
        "WHERE settled_at >= ? GROUP BY ALL",
        [pattern, large_day],
    )
    assert relation.fetchall() == [("orders", FIRST, 100)]
    scanned = pl.scan_parquet(pattern, hive_partitioning=True)
    assert scanned.filter(pl.col("settled_at") >= large_day).collect().height == 100
    zone = scanned.collect_schema()["settled_at"]
    assert zone == pl.Datetime("us", "UTC")


def test_archives_with_other_timestamps_and_without_a_column_stay_readable(
    spark: SparkSession, url: str, queue: Queue[Any], folder: Path
) -> None:
    settle(queue, "new")
    archive(spark, url=url, folder=folder, clock=ManualClock(START + DAY))
    rows = archived_rows(spark, Folder(spark, folder), date.min, date.max).drop("day", "attempts")
    spark.conf.set("spark.sql.parquet.outputTimestampType", "INT96")
    rows.replace("new", "old", ["key"]).drop("queue").coalesce(1).write.parquet(
        str(folder / f"day={FIRST}" / "queue=old")
    )
    spark.conf.unset("spark.sql.parquet.outputTimestampType")
    found = archived_rows(spark, Folder(spark, folder), date.min, date.max).orderBy("key").collect()
    assert [(row.key, row.settled_at, row.attempts) for row in found] == [
        ("new", found[0].settled_at, 1),
        ("old", found[0].settled_at, None),
    ]


class Crash(BaseException):
    """Stands for the end of the process."""


def test_old_days_are_removed_as_a_whole(
    spark: SparkSession, url: str, queue: Queue[Any], folder: Path, clock: ManualClock
) -> None:
    for number in range(3):
        settle(queue, f"a{number}")
        clock.advance(DAY)
    done = archive(spark, url=url, folder=folder, clock=clock, keep=3 * DAY)
    assert (done.rows, done.expired) == (3, [])
    clock.advance(2 * DAY)
    moved: list[str] = []
    move = Folder.move

    def crash(self: Folder, name: str, to: str) -> None:
        if moved:
            raise Crash
        move(self, name, to)
        moved.append(name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Folder, "move", crash)
        with pytest.raises(Crash):
            archive(spark, url=url, folder=folder, clock=clock, keep=3 * DAY)
    assert [key for _, _, key in in_archive(spark, folder)] == ["a1", "a2"]
    done = archive(spark, url=url, folder=folder, clock=clock, keep=3 * DAY)
    assert done.expired == [START.date() + DAY]
    assert {each.name for each in folder.iterdir()} == {"_lock", "day=2026-03-03"}


@pytest.mark.parametrize("keep", [timedelta(hours=23), timedelta(days=1_000_000)])
def test_a_wrong_age_is_refused_before_anything_is_done(
    spark: SparkSession, url: str, folder: Path, keep: timedelta
) -> None:
    with pytest.raises(ValueError, match=r"keep must be at least one day and at most \d+ days"):
        archive(spark, url=url, folder=folder, keep=keep)
    assert not folder.exists()


def test_folders_that_are_not_days_are_left_alone(
    spark: SparkSession, url: str, queue: Queue[Any], folder: Path
) -> None:
    settle(queue, "a")
    names = {"day=backup", "day=20260301", "day=2026-02-30"}
    for name in names:
        (folder / name).mkdir(parents=True)
    archive(spark, url=url, folder=folder, clock=ManualClock(START + 40 * DAY), keep=DAY)
    assert {each.name for each in folder.iterdir()} == {"_lock", *names}
