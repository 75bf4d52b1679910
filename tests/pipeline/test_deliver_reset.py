"""A checkpoint of `deliver` that is damaged or lost, and `reset_checkpoint`."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from duequeue import Queue
from duequeue.pipeline import Delivered, ToQueue
from tests.pipeline.test_deliver_results import fill, jobs, keys_in
from tests.spark.tables import count

pytestmark = pytest.mark.parametrize("url", ["sqlite"], indirect=True)


def cut(name: str) -> Callable[[Path], None]:
    """Return a function that leaves half of a file, as a power failure may."""

    def damage(checkpoint: Path) -> None:
        file = checkpoint / name
        content = file.read_bytes()
        file.write_bytes(content[: len(content) // 2])
        (file.parent / f".{file.name}.crc").unlink(missing_ok=True)

    return damage


def remove(name: str) -> Callable[[Path], None]:
    """Return a function that removes a file."""
    return lambda checkpoint: (checkpoint / name).unlink()


DAMAGES = {
    "half an offset": cut("offsets/1"),
    "half of the offset before": cut("offsets/0"),
    "half a commit": cut("commits/1"),
    "half of the metadata": cut("metadata"),
    "no metadata": remove("metadata"),
    "no offset before the last": remove("offsets/0"),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_checkpoint_is_told_of_in_one_sentence_and_can_be_reset(
    spark: SparkSession, url: str, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    run = jobs(spark, url, tmp_path)
    keys = fill(url, "mails", 20)
    assert run("mails", "checkpoint") == Delivered(acked=20)
    fill(url, "mails", 20)
    assert run("mails", "checkpoint") == Delivered(acked=20)
    consumer = (tmp_path / "checkpoint" / "duequeue-consumer").read_text()
    damage(tmp_path / "checkpoint")
    fill(url, "mails", 20)
    with pytest.raises(ValueError, match="is damaged or missing: run again with reset_ch") as told:
        run("mails", "checkpoint")
    assert "\n" not in str(told.value)
    with Queue.open(url, "mails") as queue:
        assert (queue.stats().due, queue.stats().leased) == (20, 0)
    assert run("mails", "checkpoint", reset_checkpoint=True) == Delivered(acked=20)
    fill(url, "mails", 20)
    assert run("mails", "checkpoint") == Delivered(acked=20), "and so it goes on"
    assert keys_in(tmp_path) == sorted(keys * 4)
    assert (tmp_path / "checkpoint" / "duequeue-consumer").read_text() == consumer
    assert spark.read.parquet(str(tmp_path / "sent")).count() == 80


def test_a_lost_checkpoint_is_made_anew_from_the_results(
    spark: SparkSession, url: str, tmp_path: Path
) -> None:
    run = jobs(spark, url, tmp_path)
    keys = fill(url, "mails", 20)
    assert run("mails", "checkpoint") == Delivered(acked=20)
    consumer = (tmp_path / "checkpoint" / "duequeue-consumer").read_text()
    shutil.rmtree(tmp_path / "checkpoint")
    fill(url, "mails", 20)
    assert run("mails", "checkpoint", reset_checkpoint=True) == Delivered(acked=20)
    assert keys_in(tmp_path) == sorted(keys * 2)
    assert (tmp_path / "checkpoint" / "duequeue-consumer").read_text() == consumer


def test_a_reset_finds_the_leases_of_its_consumer_again(
    spark: SparkSession, url: str, tmp_path: Path
) -> None:
    """The run failed in its second batch, which is still leased, and so is the third."""
    keys = fill(url, "mails", 60)
    run = jobs(spark, url, tmp_path, maxMessagesPerTrigger=20, batch=20, numPartitions=1)
    assert run("mails", "checkpoint", maxMessagesPerTrigger=60) == Delivered(acked=60)
    fill(url, "mails", 60)
    kill_at = tmp_path / "kill"

    def break_off(_: object) -> None:
        if kill_at.exists():
            os._exit(1)
        kill_at.touch()

    with pytest.raises(Exception, match=r"crashed|worker|exit"):
        run("mails", "checkpoint", handler=break_off)
    with Queue.open(url, "mails") as queue:
        assert queue.stats().leased >= 20
    cut("metadata")(tmp_path / "checkpoint")
    assert run("mails", "checkpoint", reset_checkpoint=True) == Delivered(acked=40)
    assert keys_in(tmp_path) == sorted(keys * 2)
    assert count(url, "duequeue_stream_batch") == 0


@pytest.mark.parametrize("damaged", ["offsets/0", "metadata"])
def test_a_reset_with_results_in_a_queue(
    spark: SparkSession, url: str, tmp_path: Path, damaged: str
) -> None:
    def answer(batch: list[Any]) -> list[int]:
        return [each.payload for each in batch]

    run = jobs(spark, url, tmp_path, results=ToQueue(url, "bills"), handler=answer)
    for name in ("one", "two"):
        with Queue.open(url, "mails") as queue:
            queue.offer(name, 1)
        if name == "two":
            cut(damaged)(tmp_path / "checkpoint")
            with pytest.raises(ValueError, match="is damaged or missing"):
                run("mails", "checkpoint")
        assert run("mails", "checkpoint", reset_checkpoint=name == "two") == Delivered(acked=1)
    with Queue.open(url, "bills") as bills:
        assert sorted(each.key for each in bills.try_poll_many(9)) == ["one", "two"]


def test_a_reset_does_not_take_the_results_of_another_checkpoint(
    spark: SparkSession, url: str, tmp_path: Path
) -> None:
    run = jobs(spark, url, tmp_path)
    fill(url, "mails", 5)
    assert run("mails", "of-mails") == Delivered(acked=5)
    fill(url, "texts", 5)
    own = {"results": tmp_path / "own"}
    assert run("texts", "of-texts", **own) == Delivered(acked=5)
    with pytest.raises(ValueError, match="were not written from checkpoint"):
        run("texts", "of-texts", reset_checkpoint=True)
    fill(url, "texts", 5)
    assert run("texts", "of-texts", **own) == Delivered(acked=5), "its checkpoint is as it was"


def test_a_reset_of_a_new_checkpoint_does_no_harm(
    spark: SparkSession, url: str, tmp_path: Path
) -> None:
    keys = fill(url, "mails", 5)
    run = jobs(spark, url, tmp_path)
    assert run("mails", "checkpoint", reset_checkpoint=True) == Delivered(acked=5)
    assert keys_in(tmp_path) == keys
