"""Runs every job on Spark Connect: `python -m tests.pipeline.connect_client <address> <folder>`.

A process has either sessions of Connect or sessions with Java, so this needs its own process.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from duequeue.pipeline import Received, archive, deliver, migrate, replay, report
from duequeue.spark import cluster_session


class Steps:
    """Keeps the reports of every job."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def step(self, what: str) -> None:
        self.seen.append(what)

    def at(self, what: str, done: int, parts: int) -> None:
        self.seen.append(f"{what} {0 <= done <= parts}")

    def still(self, line: str) -> None:
        self.seen.append(line)


def keys(messages: list[Received]) -> list[str]:
    return [message.key for message in messages]


def run_jobs(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Deliver, archive, report, replay and migrate, and return the result of each."""
    url, other = (f"sqlite:///{folder}/{name}.db" for name in ("queue", "other"))
    steps = Steps()
    given: dict[str, Any] = {"progress": steps}
    queue: dict[str, Any] = {"url": url, "queue": "orders"}
    delivered = deliver(
        spark,
        **queue,
        handler=keys,
        checkpoint=folder / "delivering",
        results=folder / "results",
        history="true",
        **given,
    )
    results = spark.read.parquet(str(folder / "results")).collect()
    kept = folder / "archive"
    archived = archive(spark, url=url, folder=kept, include_today=True, **given)
    reported = report(spark, url=url, archive=kept, folder=folder / "report", **given)
    replayed = replay(spark, kept, **queue, payload="to_json(struct(attempts))", **given)
    moved = migrate(
        spark, source=url, target=other, queue="orders", checkpoint=folder / "moving", **given
    )
    read = spark.read.format("duequeue").options(url=other, queue="orders").load()
    return {
        "delivered": delivered,
        "results": sorted(row["result"] for row in results),
        "archived": archived.rows,
        "files": sorted({path.suffix for path in kept.rglob("day=*/**/*") if path.is_file()}),
        "reported": reported.settled,
        "replayed": replayed.offered,
        "moved": moved,
        "read": sorted((row["key"], row["payload"]) for row in read.collect()),
        "not shared": _refused(spark, url, folder),
        "left": (folder / "elsewhere").exists(),
        "progress": steps.seen,
    }


def _refused(spark: SparkSession, url: str, folder: Path) -> str:
    """Archive to a folder that is a different one for the server, and return the error."""
    os.chdir(folder)
    try:
        archive(spark, url=url, folder="/proc/self/cwd/elsewhere/history")
    except (ValueError, PySparkException) as error:
        return str(error)
    return ""


if __name__ == "__main__":
    json.dump(run_jobs(cluster_session(sys.argv[1]), Path(sys.argv[2])), sys.stdout)
