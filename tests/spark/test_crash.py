"""Killed at any point and started again from the checkpoint: nothing lost, nothing twice."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from duequeue import Message, Queue
from tests.fixtures.postgres import PostgresServer
from tests.race.together import PATIENCE
from tests.spark.frames import PAST, SCHEMA
from tests.spark.streams import in_files, run_through, stream, to_files, to_function
from tests.spark.tables import count, drained

ROOT = Path(__file__).parents[2]

READ_POINTS = [
    "leased, not logged",
    "logged, not read",
    "read, not written",
    "committed, not acked",
]
WRITE_POINTS = ["staged, not merged", "merged, not committed"]
ROWS = 2500


@contextmanager
def driver(
    master: str, parts: list[dict[str, Any]], folder: Path
) -> Iterator[subprocess.Popen[str]]:
    """Run a driver process; whatever is left of it is killed in the end."""
    path = folder / "program.json"
    path.write_text(json.dumps({"parts": parts}))
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.spark.driver", master, str(path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        kill_family(process)


def kill_family(process: subprocess.Popen[str]) -> None:
    """Kill a driver and its Java, as the loss of its machine would; the rest ends with them."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=PATIENCE)


def until_all_halted(process: subprocess.Popen[str], markers: list[Path]) -> None:
    gives_up_at = monotonic() + 5 * PATIENCE
    while not all(marker.exists() for marker in markers):
        assert process.poll() is None, process.communicate()[1]
        missing = [marker.parent.name for marker in markers if not marker.exists()]
        assert monotonic() < gives_up_at, f"never came to {missing}"
        Event().wait(0.1)  # the driver needs the processors more


class Scene:
    """One query, on a queue and in a folder of its own."""

    def __init__(self, url: str, point: str, folder: Path) -> None:
        self.url, self.point = url, point
        self.folder = folder / f"{url.partition(':')[0]}, {point}"
        self.folder.mkdir()
        self.marker = self.folder / "halted"
        self.options = {
            "url": url,
            "queue": point,
            "halt": point,
            "marker": str(self.marker),
        }

    def reading(self) -> dict[str, Any]:
        with Queue.open(self.url, self.point) as queue:
            queue.offer_batch(Message(f"k{number:04}", number, PAST) for number in range(ROWS))
        options = {**self.options, "maxMessagesPerTrigger": "1000", "batchSize": "400"}
        return {
            "does": "read",
            "options": {**options, "numPartitions": "1"},
            "out": str(self.folder / "out"),
            "checkpoint": str(self.folder / "checkpoint"),
        }

    def writing(self) -> dict[str, Any]:
        (self.folder / "in").mkdir()
        lines = [
            json.dumps({"key": f"k{number:04}", "payload": "1", "due_at": PAST.isoformat()})
            for number in range(ROWS)
        ]
        (self.folder / "in" / "file").write_text("\n".join(lines))
        return {
            "does": "write",
            "options": self.options,
            "in": str(self.folder / "in"),
            "checkpoint": str(self.folder / "checkpoint"),
        }


@pytest.mark.timeout(600)
def test_the_driver_is_killed_at_every_point(
    spark: SparkSession, ready_database: str, ready_mariadb: str, redis_url: str, tmp_path: Path
) -> None:
    file = f"sqlite:///{tmp_path / 'queue.db'}"
    others = (file, ready_mariadb, redis_url)
    readers = [Scene(ready_database, point, tmp_path) for point in READ_POINTS]
    readers += [Scene(url, "leased, not logged", tmp_path) for url in others]
    writers = [Scene(ready_database, point, tmp_path) for point in WRITE_POINTS]
    writers += [Scene(url, "merged, not committed", tmp_path) for url in others]
    parts = [scene.reading() for scene in readers] + [scene.writing() for scene in writers]
    with driver("local[16]", parts, tmp_path) as process:
        until_all_halted(process, [scene.marker for scene in readers + writers])
    for scene in readers:
        frame = stream(spark, scene.url, queue=scene.point, maxMessagesPerTrigger="1000")
        run_through(to_files(frame, scene.folder))
        expected = [f"k{number:04}" for number in range(ROWS)]
        assert in_files(spark, scene.folder) == expected, scene.folder.name
        with Queue.open(scene.url, scene.point) as queue:
            assert queue.stats().total == 0, scene.folder.name
    for scene in writers:
        with Queue.open(scene.url, scene.point) as queue:
            before = drained(queue)  # a consumer goes on while the driver is down
            assert len(before) == (ROWS if scene.point == "merged, not committed" else 0)
            assert queue.ack_many(before) == len(before)
            frame = spark.readStream.schema(SCHEMA).json(str(scene.folder / "in"))
            options = {"url": scene.url, "queue": scene.point}
            sink = frame.writeStream.format("duequeue").options(**options)
            run_through(sink.option("checkpointLocation", str(scene.folder / "checkpoint")))
            after = drained(queue)
            assert len({each.key for each in before + after}) == len(before + after) == ROWS
    for url in (file, ready_database):
        assert count(url, "duequeue_stream_batch") == 0
        assert count(url, "duequeue_stage") == 0


@pytest.mark.timeout(600)
def test_an_executor_is_killed(spark: SparkSession, ready_database: str, tmp_path: Path) -> None:
    """On a cluster of two executors in processes of their own; Spark runs the work again."""
    reader = Scene(ready_database, "executor reads", tmp_path)
    writer = Scene(ready_database, "executor writes", tmp_path)
    parts = [reader.reading(), {"does": "offer", "options": writer.options, "rows": ROWS}]
    with driver("local-cluster[2,1,1024]", parts, tmp_path) as process:
        _, errors = process.communicate(timeout=5 * PATIENCE)
        assert process.returncode == 0, errors
    assert reader.marker.exists()
    assert writer.marker.exists()
    assert in_files(spark, reader.folder) == [f"k{number:04}" for number in range(ROWS)]
    with (
        Queue.open(ready_database, reader.point) as read,
        Queue.open(ready_database, writer.point) as written,
    ):
        assert read.stats().total == 0
        assert len({each.key for each in drained(written)}) == written.stats().total == ROWS


def test_the_database_crashes_while_a_query_runs(
    spark: SparkSession, frail_server: PostgresServer, tmp_path: Path
) -> None:
    url = frail_server.create_database()
    with Queue.open(url, "orders") as queue:
        queue.offer_batch(Message(f"k{number:04}", number, PAST) for number in range(ROWS))
        batches: list[list[str]] = []

        def crash_once(rows: DataFrame, number: int) -> None:
            if number == 1:
                frail_server.restart("immediate")
            batches.append([row.key for row in rows.collect()])

        frame = stream(spark, url, maxMessagesPerTrigger="1000")
        run_through(to_function(frame, tmp_path, crash_once))
        delivered = [key for batch in batches for key in batch]
        assert sorted(delivered) == [f"k{number:04}" for number in range(ROWS)]
        assert queue.stats().total == 0
