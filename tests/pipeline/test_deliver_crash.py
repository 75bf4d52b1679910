"""`deliver` and `migrate` are killed in their first seconds, and continue when they run again."""

import os
import random
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from pyspark.sql import SparkSession

from duequeue import Message, Queue
from duequeue.bulk.port import BatchId, Reach
from duequeue.pipeline import Delivered, Migrated, deliver, migrate
from duequeue.spark.open_bulk import OpenBulk
from duequeue.spark.options import parse
from tests.fixtures.stores import on_redis_too
from tests.race.together import PATIENCE
from tests.spark.frames import PAST

ROOT = Path(__file__).parents[2]
ROWS = 600
KEYS = sorted(f"k{number}" for number in range(ROWS))

PROGRAM = """
import sys
from duequeue.pipeline import deliver
from duequeue.spark import local_session

url, checkpoint, results = sys.argv[1:]
spark = local_session(cores="1", memory="512m")
print("ready", flush=True)
deliver(
    spark, url=url, queue="orders", handler=lambda _: None, checkpoint=checkpoint,
    results=results, maxMessagesPerTrigger=200, numPartitions=1,
)
"""


@pytest.fixture
def queue(url: str) -> Any:
    """A queue full of messages that are due."""
    with Queue.open(url, "orders") as queue:
        queue.offer_batch(Message(f"k{number}", number, PAST) for number in range(ROWS))
        yield queue


def half_written(checkpoint: Path) -> None:
    """Create the files that a kill during the first write of an offset leaves."""
    (checkpoint / "offsets").mkdir(parents=True)
    for name in (".0.abc.tmp", "..0.abc.tmp.crc"):
        (checkpoint / "offsets" / name).touch()


def test_a_half_written_first_offset_does_not_block_a_delivery(
    spark: SparkSession, url: str, queue: Queue[Any], tmp_path: Path
) -> None:
    half_written(tmp_path / "checkpoint")
    done = deliver(
        spark,
        url=url,
        queue="orders",
        handler=lambda _: None,
        checkpoint=tmp_path / "checkpoint",
    )
    assert done == Delivered(acked=ROWS)


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_a_half_written_first_offset_does_not_block_a_migration(
    spark: SparkSession, url: str, queue: Queue[Any], tmp_path: Path
) -> None:
    half_written(tmp_path / "checkpoint")
    moved = migrate(
        spark,
        source=url,
        target=f"sqlite:///{tmp_path / 'target.db'}",
        queue="orders",
        checkpoint=tmp_path / "checkpoint",
    )
    assert moved == Migrated(moved=ROWS, left=0)


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_a_half_written_later_offset_is_left_to_spark(
    spark: SparkSession, url: str, queue: Queue[Any], tmp_path: Path
) -> None:
    given: dict[str, Any] = {"url": url, "queue": "orders", "checkpoint": tmp_path / "checkpoint"}
    given |= {"handler": lambda _: None}
    assert deliver(spark, **given) == Delivered(acked=ROWS)
    before = {each.name for each in (tmp_path / "checkpoint" / "offsets").iterdir()}
    assert "0" in before
    (tmp_path / "checkpoint" / "offsets" / ".1.abc.tmp").touch()
    queue.offer("more", 1, PAST)
    assert deliver(spark, **given) == Delivered(acked=1)
    assert before <= {each.name for each in (tmp_path / "checkpoint" / "offsets").iterdir()}


@on_redis_too
def test_a_run_that_was_killed_before_its_first_offset_finds_its_leases_again(
    spark: SparkSession, url: str, queue: Queue[Any], tmp_path: Path
) -> None:
    """The next run does not wait for the leases to end, which would take five minutes."""
    checkpoint = tmp_path / "checkpoint"
    given: dict[str, Any] = {"url": url, "queue": "orders", "checkpoint": checkpoint}
    given |= {"handler": lambda _: None}
    with pytest.raises(ValueError, match="batch must be"):
        deliver(spark, **given, batch=0)
    assert not checkpoint.exists(), "a wrong argument leaves nothing behind"
    checkpoint.mkdir()
    (checkpoint / "duequeue-consumer").write_text("killed")
    with OpenBulk(parse({"url": url, "queue": "orders"})) as bulk:
        now = bulk.now()
        bulk.run(
            partial(
                bulk.store.lease,
                BatchId("killed", 1),
                1000,
                1000,
                now,
                now + 300_000,
                Reach(now, 2**62),
            )
        )
    assert queue.stats().leased == ROWS
    assert deliver(spark, **given) == Delivered(acked=ROWS)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("url", ["postgres"], indirect=True)
def test_a_driver_that_is_killed_at_random_in_its_first_seconds_loses_nothing(
    spark: SparkSession, url: str, queue: Queue[Any], tmp_path: Path
) -> None:
    checkpoint, results = tmp_path / "checkpoint", tmp_path / "results"
    delays = [random.uniform(0, 2) for _ in range(2)]  # noqa: S311 - not for secrets
    print(f"the driver is killed after {delays} seconds")  # noqa: T201 - shown if the test fails
    for delay in delays:
        kill_after(delay, url, str(checkpoint), str(results))
    deliver(
        spark,
        url=url,
        queue="orders",
        handler=lambda _: None,
        checkpoint=checkpoint,
        results=results,
    )
    found = sorted(row.key for row in spark.read.parquet(str(results)).select("key").collect())
    assert found == KEYS, delays
    assert queue.stats().total == 0, delays


def kill_after(seconds: float, *arguments: str) -> None:
    """Start a driver, and kill it and its Java some time after it began to deliver."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        Event().wait(seconds)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=PATIENCE)
