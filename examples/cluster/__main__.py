"""Watch a cluster ingest messages, deliver them while an executor is killed, and archive them.

The cluster is a master and two workers on this machine. It uses an empty PostgreSQL database of
yours, or starts a server for the demo. See `python -m examples.cluster --help`.
"""

import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import date
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import psycopg
from pyspark.sql import DataFrame, SparkSession

from duequeue.cli.strict_parser import StrictParser
from duequeue.pipeline import Received, archive, deliver, ingest
from duequeue.pipeline.folder import Folder
from duequeue.pipeline.history_frames import archived_rows
from duequeue.spark import cluster_session
from examples.cluster.postgres import own_postgres
from examples.cluster.standalone import Cluster, standalone

QUEUE = "reminders"
ROUNDS = 10


class Counted(NamedTuple):
    """How many messages there were after each job."""

    created: int
    delivered: int
    archived: int


class PrintedProgress:
    """Prints how far a job is."""

    def __init__(self) -> None:
        self._began = monotonic()
        self._last = ""

    def step(self, what: str) -> None:
        """Print a new step with the time."""
        if what != self._last:
            self._last = what
            print(f"{monotonic() - self._began:6.1f} s  {what}", flush=True)

    def at(self, what: str, done: int, parts: int) -> None:
        """Print nothing, because the steps are enough."""

    def still(self, line: str) -> None:
        """Print the line if it is new."""
        self.step(line)


def double(batch: list[Received]) -> list[Any]:
    """Handle messages on an executor."""
    return [{"twice": 2 * each.payload["number"]} for each in batch]


def main() -> int:
    """Run the demo; return 0 if all counts agree."""
    parser = StrictParser(prog="python -m examples.cluster", description=__doc__)
    parser.add_argument(
        "--url",
        help="an empty PostgreSQL database (default: a server that is started for the demo)",
    )
    parser.add_argument(
        "--messages", type=int, default=1_000_000, help="how many messages to ingest"
    )
    given = parser.parse_args()
    messages: int = given.messages
    progress = PrintedProgress()
    progress.step("starting PostgreSQL, a master and two workers")
    with (
        tempfile.TemporaryDirectory(prefix="duequeue-cluster-") as name,
        nullcontext(_empty(given.url)) if given.url else own_postgres() as url,
        standalone(Path(name)) as cluster,
        _session(cluster.master) as spark,
    ):
        counted = run(spark, cluster, url, Path(name), messages, progress)
    print(
        f"created {counted.created:,}, delivered {counted.delivered:,}, "
        f"archived {counted.archived:,}"
    )
    return 0 if set(counted) == {messages} else 1


def _empty(url: str) -> str:
    """Refuse a database in use, because its history would be archived into a temporary folder."""
    with psycopg.connect(url) as connection:
        found = connection.execute("SELECT to_regclass('duequeue_message')").fetchone()
    if found != (None,):
        raise SystemExit(
            "--url must name an empty database, but this one has queues. "
            "Without --url, the demo starts its own server"
        )
    return url


def run(
    spark: SparkSession,
    cluster: Cluster,
    url: str,
    folder: Path,
    messages: int,
    progress: PrintedProgress,
) -> Counted:
    """Run all jobs, and count the messages after each."""
    source, results = str(folder / "source.parquet"), folder / "results"
    spark.range(messages).selectExpr(
        "concat('reminder ', id) AS key", "id AS number", "TIMESTAMP'2020-01-01' AS due_at"
    ).write.parquet(source)
    ingested = ingest(spark, source, url=url, queue=QUEUE, progress=progress)
    with killing(cluster, results, progress):
        deliver(
            spark,
            url=url,
            queue=QUEUE,
            handler=double,
            checkpoint=folder / "checkpoint",
            results=results,
            progress=progress,
            history="true",
            maxMessagesPerTrigger=str(max(1, messages // ROUNDS)),
        )
    archive(spark, url=url, folder=folder / "archive", include_today=True, progress=progress)
    delivered = spark.read.parquet(str(results))
    archived = archived_rows(spark, Folder(spark, folder / "archive"), date.min, date.max)
    return Counted(ingested.offered.created, unique_keys(delivered), unique_keys(archived))


def unique_keys(rows: DataFrame) -> int:
    """Count the keys that occur exactly once."""
    return rows.groupBy("key").count().where("count = 1").count()


@contextmanager
def killing(cluster: Cluster, results: Path, progress: PrintedProgress) -> Iterator[None]:
    """Kill an executor when the first results are written."""
    over = threading.Event()

    def watch() -> None:
        while not (results / "_spark_metadata" / "0").exists():
            if over.wait(0.05):
                return
        progress.step(f"killed an executor: process {cluster.kill_an_executor()}")

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


@contextmanager
def _session(master: str) -> Iterator[SparkSession]:
    config = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "1g",
        "spark.log.level": "OFF",
        "spark.sql.shuffle.partitions": "4",
    }
    spark = cluster_session(master, "duequeue cluster demo", config=config)
    try:
        yield spark
    finally:
        spark.stop()


if __name__ == "__main__":
    sys.exit(main())
