"""Small files of an archive are joined, and every reader finds each row once meanwhile."""

import logging
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from duequeue import ManualClock, Queue
from duequeue.contract.fixtures import START
from duequeue.pipeline import archive, replay, report
from duequeue.pipeline.folder import Folder
from duequeue.pipeline.progress import NoProgress
from duequeue.pipeline.replaying import rows_of
from tests.pipeline.settling import in_archive, settle

DAY = timedelta(days=1)
FIRST = "day=2026-03-01"
# As many small files as are joined.
FILES = 4


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("day=*/queue=*/*.parquet"))


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database and its archive of many small files, which each test copies."""
    made = tmp_path_factory.mktemp("hourly")
    url, clock = f"sqlite:///{made / 'queue.db'}", ManualClock(START)
    with Queue.open(url, "orders", clock=clock, history=True) as queue:
        for number in range(FILES):
            settle(queue, f"a{number}")
            archive(spark, url=url, folder=made / "archive", clock=clock, include_today=True)
    return made


@pytest.fixture
def url(made: Path, tmp_path: Path) -> str:
    """One kind of database, because the files are the same for each."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return f"sqlite:///{tmp_path / 'queue.db'}"


@pytest.fixture
def hourly(url: str, folder: Path) -> list[Any]:
    """The rows of the archive, each of which has a file."""
    assert len(files(folder)) == FILES
    return [(FIRST[4:], "orders", f"a{number}") for number in range(FILES)]


def next_day(spark: SparkSession, url: str, folder: Path) -> None:
    archive(spark, url=url, folder=folder, clock=ManualClock(START + DAY))


def test_small_files_of_a_day_that_is_over_are_joined(
    spark: SparkSession, url: str, folder: Path, hourly: list[Any]
) -> None:
    manifests = len(list(folder.glob("day=*/_manifest-*.json")))
    with Folder(spark, folder).being_read():
        next_day(spark, url, folder)
        assert len(files(folder)) == FILES, "somebody reads them"
    next_day(spark, url, folder)
    assert len(files(folder)) == 1
    assert in_archive(spark, folder) == hourly
    assert len(list(folder.glob("day=*/_manifest-*.json"))) == manifests


class Crash(BaseException):
    """Stands for the end of the process."""


def crash(spark: SparkSession, url: str, folder: Path, method: str, name: str) -> None:
    """End a run where it calls this method of a folder with such a name."""
    real = getattr(Folder, method)

    def crashing(self: Folder, *given: str) -> None:
        if given[-1].startswith(name):
            raise Crash
        real(self, *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Folder, method, crashing)
        with pytest.raises(Crash):
            next_day(spark, url, folder)


POINTS = {
    "written": ("move", "_joining/manifest"),
    "sealed": ("move", FIRST),
    "in place": ("delete", FIRST),
    "replaced": ("delete", "_joining/manifest"),
}


@pytest.mark.parametrize("point", POINTS)
def test_after_a_crash_each_row_is_read_once(
    spark: SparkSession, url: str, folder: Path, hourly: list[Any], tmp_path: Path, point: str
) -> None:
    crash(spark, url, folder, *POINTS[point])
    clock = ManualClock(START + DAY)
    done = report(spark, archive=folder, folder=tmp_path / "page", days=3, clock=clock)
    assert done.settled == FILES
    with rows_of(spark, folder) as rows:
        assert rows.count() == FILES
    next_day(spark, url, folder)
    assert in_archive(spark, folder) == hourly
    assert len(files(folder)) == 1
    assert {each.name for each in folder.iterdir()} == {"_lock", FIRST}


def test_a_replay_keeps_its_files_in_place(
    spark: SparkSession, url: str, folder: Path, hourly: list[Any]
) -> None:
    class Archiving(NoProgress):
        def step(self, what: str) -> None:  # noqa: ARG002 - as the protocol has it
            next_day(spark, url, folder)

    given = {"url": url, "queue": "again", "payload": "to_json(struct(key))"}
    done = replay(spark, folder, progress=Archiving(), **given)
    assert done.offered.created == len(hourly)
    assert len(files(folder)) == FILES


def test_between_two_moves_only_the_old_files_count(
    spark: SparkSession, url: str, folder: Path, hourly: list[Any], clock: ManualClock
) -> None:
    with Queue.open(url, "second", clock=clock, history=True) as second:
        for number in range(FILES):
            settle(second, f"b{number}")
            archive(spark, url=url, folder=folder, clock=ManualClock(START), include_today=True)
    both = in_archive(spark, folder)
    crash(spark, url, folder, "move", f"{FIRST}/queue=second")
    assert len(files(folder)) == 2 * FILES + 1
    assert in_archive(spark, folder) == both
    next_day(spark, url, folder)
    assert in_archive(spark, folder) == both
    assert len(files(folder)) == 2


@pytest.mark.parametrize("point", ["sealed", "in place"])
def test_an_interrupted_join_waits_for_readers(
    spark: SparkSession, url: str, queue: Queue[Any], folder: Path, hourly: list[Any], point: str
) -> None:
    crash(spark, url, folder, *POINTS[point])
    settle(queue, "late")
    before = files(folder)
    with Folder(spark, folder).being_read():
        next_day(spark, url, folder)
        assert set(before) < set(files(folder)), "somebody reads them"
        assert in_archive(spark, folder) == [*hourly, (FIRST[4:], "orders", "late")]
    next_day(spark, url, folder)
    assert len(files(folder)) == 2
    assert in_archive(spark, folder) == [*hourly, (FIRST[4:], "orders", "late")]


def test_only_files_with_rows_are_replaced(
    spark: SparkSession, url: str, folder: Path, hourly: list[Any]
) -> None:
    place = folder / FIRST / "queue=orders"
    (place / "_folder.parquet").mkdir()
    for name in ("_notes.txt", "_old.parquet", ".hidden.parquet", "_folder.parquet/notes"):
        (place / name).write_text("precious")
    before = {each.name for each in place.iterdir() if each.name[0] in "_."}
    next_day(spark, url, folder)
    assert len([each for each in files(folder) if each.name[0] not in "_."]) == 1
    assert in_archive(spark, folder) == hourly
    kept = {each.name for each in place.iterdir() if each.suffix != ".crc"}
    assert kept > {name for name in before if not name.endswith(".crc")}


@pytest.mark.parametrize("name", ["_joining/manifest.json", FIRST])
def test_a_join_that_fails_is_a_warning(
    spark: SparkSession,
    url: str,
    folder: Path,
    hourly: list[Any],
    caplog: pytest.LogCaptureFixture,
    name: str,
) -> None:
    move = Folder.move

    def fail(self: Folder, source: str, to: str) -> None:
        if to.startswith(name):
            raise OSError("the disk is full")
        move(self, source, to)

    with pytest.MonkeyPatch.context() as patch, caplog.at_level(logging.WARNING):
        patch.setattr(Folder, "move", fail)
        next_day(spark, url, folder)
        next_day(spark, url, folder)
    assert "the next run tries again" in caplog.text
    assert in_archive(spark, folder) == hourly
    next_day(spark, url, folder)
    assert len(files(folder)) == 1
    assert in_archive(spark, folder) == hourly
