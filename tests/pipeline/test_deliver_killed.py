"""A driver of `deliver` is killed when a task has written its file, which no commit lists yet."""

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import polars as pl
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from duequeue import Message, Queue
from duequeue.pipeline import Delivered, deliver
from tests.race.together import PATIENCE
from tests.spark.frames import PAST

ROOT = Path(__file__).parents[2]
# Each of two tasks has a slice of a thousand messages. The first one kills the driver in its last
# call, when the file of the second one is complete.
ROWS = 2000
PROGRAM = """
import os, signal, sys
from pathlib import Path
from threading import Event
from duequeue.pipeline import deliver
from duequeue.spark import local_session

url, folder = sys.argv[1:]
group, sent = os.getpgrp(), Path(folder, "sent")

def handle(batch):
    if any(each.payload == 999 for each in batch):
        while not any(each.read_bytes()[-4:] == b"PAR1" for each in sent.glob("part-*.parquet")):
            Event().wait(0.01)
        os.killpg(group, signal.SIGKILL)

deliver(
    local_session(cores="2", memory="512m"), url=url, queue="orders", handler=handle,
    checkpoint=f"{folder}/checkpoint", results=sent, maxMessagesPerTrigger=2000, numPartitions=2,
)
"""
QUERY = "SELECT key FROM read_parquet(? || '/*.parquet')"
READERS: dict[str, Callable[[str], list[str]]] = {
    "pyarrow": lambda folder: pq.read_table(folder, columns=["key"])["key"].to_pylist(),
    "polars": lambda folder: pl.read_parquet(f"{folder}/*.parquet")["key"].to_list(),
    "duckdb": lambda folder: [row[0] for row in duckdb.execute(QUERY, [folder]).fetchall()],
}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_after_a_kill_every_reader_finds_each_message_once(
    spark: SparkSession, url: str, tmp_path: Path
) -> None:
    keys = [f"k{number:04}" for number in range(ROWS)]
    with Queue.open(url, "orders") as queue:
        queue.offer_batch(Message(key, at, PAST) for at, key in enumerate(keys))
    killed = subprocess.run(
        [sys.executable, "-c", PROGRAM, url, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        start_new_session=True,
        timeout=4 * PATIENCE,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    sent = tmp_path / "sent"
    assert any(each.read_bytes()[-4:] == b"PAR1" for each in sent.glob("part-*.parquet"))
    done = deliver(
        spark,
        url=url,
        queue="orders",
        handler=lambda _: None,
        checkpoint=tmp_path / "checkpoint",
        results=sent,
    )
    assert done == Delivered(acked=ROWS)
    found = {name: sorted(read(str(sent))) for name, read in READERS.items()}
    assert found == dict.fromkeys(READERS, keys), {name: len(each) for name, each in found.items()}
