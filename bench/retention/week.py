"""The simulation: a day of messages is offered, delivered on time, archived and reported."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
from pyspark.sql import SparkSession

from bench.reminders import PARTS, payload
from bench.retention.costs import Day
from bench.retention.full_scale import DAYS
from bench.retention.meter import Meter
from duequeue import Queue
from duequeue.clock import ManualClock
from duequeue.pipeline import archive, report
from duequeue.spark import offer

QUEUE = "reminders"
BEGINS = datetime(2026, 3, 2, tzinfo=UTC)
DAY = timedelta(days=1)
OPEN = DAY - timedelta(minutes=1)  # so that the last message is settled on the same day
AT_A_TIME = 1000
HANDLING = timedelta(milliseconds=20)

HISTORY_SIZE = """
    SELECT coalesce(sum(pg_total_relation_size(inhrelid)), 0)
    FROM pg_inherits WHERE inhparent = CAST('duequeue_history' AS regclass)
"""
QUEUE_SIZE = "SELECT pg_total_relation_size('duequeue_message')"


class Week:
    """Simulates one day after another, on one database and one archive."""

    def __init__(self, spark: SparkSession, url: str, folder: Path, messages_a_day: int) -> None:
        self._spark = spark
        self._url = url
        self._folder = folder
        self._messages = messages_a_day
        self._clock = ManualClock(BEGINS)

    def live(self, number: int, told: Callable[[str], None]) -> Day:
        """Take a day through all stages."""
        begins, meter = BEGINS + number * DAY, Meter()
        told("offering")
        with meter.stage("offer"):
            self._offer(number, begins)
        sizes = {"queue": self._measured(QUEUE_SIZE)}
        told("delivering")
        with meter.stage("deliver"):
            self._deliver(begins)
        self._clean()
        sizes["history"] = self._measured(HISTORY_SIZE)
        before = self._archive_size()
        self._clock.set(begins + DAY + timedelta(hours=1))
        told("archiving")
        with meter.stage("archive"):
            self._archive()
        sizes |= {
            "Parquet": self._archive_size() - before,
            "history afterwards": self._measured(HISTORY_SIZE),
        }
        told("reporting")
        with meter.stage("report"):
            self._report((number + 1) * self._messages)
        return Day(self._messages, meter.seconds, sizes, meter.memory)

    def _offer(self, number: int, begins: datetime) -> None:
        """Offer, through Spark, a table of the messages that are due on that day."""
        start, span = int(begins.timestamp() * 1000), OPEN // timedelta(milliseconds=1)
        frame = self._spark.range(0, self._messages, 1, PARTS).selectExpr(
            f"concat('day-{number}-', id) AS key",
            f"{payload()} AS payload",
            f"{start} + id * {span} DIV {self._messages} AS due_at",
        )
        counts = offer(frame, url=self._url, queue=QUEUE, distribute=False)
        assert counts.created == self._messages

    def _deliver(self, begins: datetime) -> None:
        """Deliver with a plain consumer that keeps a history; its clock runs through the day."""
        rounds = -(-self._messages // AT_A_TIME)
        left = self._messages
        with Queue.open(self._url, QUEUE, history=True, clock=self._clock) as queue:
            for turn in range(1, rounds + 1):
                self._clock.set(begins + OPEN * turn / rounds)
                while deliveries := queue.try_poll_many(AT_A_TIME):
                    self._clock.advance(HANDLING)
                    left -= queue.ack_many(deliveries)
        assert left == 0

    def _clean(self) -> None:
        """Do the maintenance that a server does by itself in the course of a real day."""
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE duequeue_message")

    def _archive(self) -> None:
        done = archive(
            self._spark, url=self._url, folder=self._folder / "archive", clock=self._clock
        )
        assert done.rows == self._messages

    def _report(self, expected: int) -> None:
        found = report(
            self._spark,
            folder=self._folder / "report",
            archive=self._folder / "archive",
            url=self._url,
            days=DAYS + 1,  # the eighth day has begun
            clock=self._clock,
        )
        assert found.settled == expected

    def _archive_size(self) -> float:
        return sum(file.stat().st_size for file in self._folder.rglob("*.parquet")) / 1e6

    def _measured(self, query: str) -> float:
        with psycopg.connect(self._url, autocommit=True) as connection:
            row = connection.execute(query.encode()).fetchone()
        assert row is not None
        return float(row[0]) / 1e6
