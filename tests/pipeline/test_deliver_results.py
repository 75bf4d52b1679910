"""The results of `deliver`: one checkpoint writes their folder, and any reader may read it."""

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from duequeue import Message, Outcome, Queue
from duequeue.pipeline import Delivered, deliver
from duequeue.pipeline.delivering.results_folder import ResultsFolder
from tests.fixtures.stores import on_redis_too
from tests.spark.frames import PAST


def fill(url: str, name: str, count: int) -> list[str]:
    """Offer as many messages that are due, and return their keys."""
    keys = [f"{name}{number:03}" for number in range(count)]
    with Queue.open(url, name) as queue:
        queue.offer_batch(Message(key, 1, PAST) for key in keys)
    return keys


def jobs(spark: SparkSession, url: str, folder: Path, **others: Any) -> Any:
    """Return a function that delivers a queue, with one folder of results for all of them."""

    def run(queue: str, checkpoint: str, **more: Any) -> Delivered:
        given = {"handler": lambda _: None, "results": folder / "sent", "history": "true"}
        place = {"url": url, "queue": queue, "checkpoint": folder / checkpoint}
        return deliver(spark, **{**given, **place, **others, **more})

    return run


def keys_in(folder: Path) -> list[str]:
    """Return the keys that a reader other than Spark finds, as often as it finds them."""
    return sorted(pq.read_table(folder / "sent", columns=["key"])["key"].to_pylist())


@on_redis_too
def test_results_of_another_checkpoint_are_refused_before_anything_is_leased(
    spark: SparkSession, url: str, tmp_path: Path
) -> None:
    run = jobs(spark, url, tmp_path)
    mails, texts = fill(url, "mails", 20), fill(url, "texts", 20)
    assert run("mails", "of-mails") == Delivered(acked=20)
    with pytest.raises(ValueError, match=r"not written from checkpoint .*name another folder"):
        run("texts", "of-texts")
    assert not (tmp_path / "of-texts").exists()
    with Queue.open(url, "texts", history=True) as queue:
        stats = queue.stats()
        assert (stats.due, stats.leased, queue.history(9)) == (20, 0, [])
        assert run("texts", "of-texts", results=tmp_path / "own" / "sent") == Delivered(acked=20)
        assert {each.outcome for each in queue.history(9)} == {Outcome.ACKED}
    assert keys_in(tmp_path) == mails
    assert keys_in(tmp_path / "own") == texts


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_results_without_their_checkpoint_are_refused(
    spark: SparkSession, url: str, tmp_path: Path
) -> None:
    """It does not matter whether the checkpoint was removed, or the folder is of an old version."""
    run = jobs(spark, url, tmp_path)
    fill(url, "mails", 20)
    assert run("mails", "checkpoint") == Delivered(acked=20)
    shutil.rmtree(tmp_path / "checkpoint")
    fill(url, "mails", 20)
    with pytest.raises(ValueError, match="Spark would skip new messages"):
        run("mails", "checkpoint")
    (tmp_path / "sent" / "_duequeue_checkpoint").unlink()
    with pytest.raises(ValueError, match="Spark would skip new messages"):
        run("mails", "checkpoint")
    with Queue.open(url, "mails") as queue:
        assert queue.stats().due == 20


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_results_of_an_early_version_go_on(spark: SparkSession, url: str, tmp_path: Path) -> None:
    run = jobs(spark, url, tmp_path)
    fill(url, "mails", 20)
    assert run("mails", "checkpoint") == Delivered(acked=20)
    (tmp_path / "sent" / "_duequeue_checkpoint").unlink()
    fill(url, "mails", 20)
    assert run("mails", "checkpoint") == Delivered(acked=20)
    assert len(keys_in(tmp_path)) == 40


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_a_folder_with_files_of_somebody_else_is_refused_and_left_alone(
    spark: SparkSession, url: str, tmp_path: Path
) -> None:
    spark.range(3).write.parquet(str(tmp_path / "sent"))
    before = sorted((tmp_path / "sent").glob("*.parquet"))
    with pytest.raises(ValueError, match="has Parquet files that no delivery has listed"):
        jobs(spark, url, tmp_path)("mails", "checkpoint")
    assert sorted((tmp_path / "sent").glob("*.parquet")) == before != []


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_files_that_no_commit_lists_go_when_a_run_begins_or_ends(
    spark: SparkSession, url: str, tmp_path: Path
) -> None:
    """A kill leaves such files, and a task whose executor is lost does so while a run goes on."""
    run = jobs(spark, url, tmp_path)
    keys = fill(url, "mails", 20)
    assert run("mails", "checkpoint") == Delivered(acked=20)
    sent = tmp_path / "sent"
    (good,) = sent.glob("part-*.parquet")
    stray = sent / f"part-00001-{'0' * 8}-{'-'.join(['0' * 4] * 3)}-{'0' * 12}-c000.zstd.parquet"
    shutil.copy(good, stray)
    shutil.copy(good, sent / "mine.parquet")
    assert keys_in(tmp_path) == sorted(keys * 3)

    def leave_another(_: object) -> None:
        assert not stray.exists()
        shutil.copy(good, stray)

    fill(url, "mails", 1)
    assert run("mails", "checkpoint", handler=leave_another) == Delivered(acked=1)
    assert not stray.exists()
    (sent / "mine.parquet").unlink()
    assert keys_in(tmp_path) == sorted([*keys, keys[0]])


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_timestamps_have_a_zone_and_files_are_small(
    spark: SparkSession, url: str, tmp_path: Path
) -> None:
    fill(url, "mails", 2)
    jobs(spark, url, tmp_path)("mails", "checkpoint")
    (file,) = (tmp_path / "sent").glob("*.parquet")
    written = pq.ParquetFile(file)
    assert written.schema_arrow.field("due_at").type == pa.timestamp("us", "UTC")
    assert written.metadata.row_group(0).column(0).compression == "ZSTD"
    assert pq.read_table(file)["due_at"].to_pylist() == [PAST, PAST]
    before = spark.conf.get("spark.sql.parquet.outputTimestampType")
    assert before != "TIMESTAMP_MICROS"


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_two_runs_do_not_write_into_one_folder_at_once(
    spark: SparkSession, url: str, tmp_path: Path
) -> None:
    run = jobs(spark, url, tmp_path)
    fill(url, "mails", 1)
    first = ResultsFolder(spark, tmp_path / "sent")
    with (
        first.locked(),
        pytest.raises(ValueError, match="another process is writing into folder"),
    ):
        run("mails", "checkpoint")
    assert run("mails", "checkpoint") == Delivered(acked=1)
