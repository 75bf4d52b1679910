"""How far a job is, reported while it runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Protocol

from pyspark.sql import SparkSession

INTERVAL_SECONDS = 0.5


class Progress(Protocol):
    """Receives reports on how far a job is."""

    def step(self, what: str) -> None:
        """Report that a step begins."""

    def at(self, what: str, done: int, parts: int) -> None:
        """Report how many of a step's parts are done."""

    def still(self, line: str) -> None:
        """Report how a step without a known end is going."""


class NoProgress:
    """Ignores every report."""

    def step(self, what: str) -> None:
        """Ignore it."""

    def at(self, what: str, done: int, parts: int) -> None:
        """Ignore it."""

    def still(self, line: str) -> None:
        """Ignore it."""


def counted(number: int, noun: str) -> str:
    """Write a number with its noun, in the singular or the plural."""
    return f"1 {noun}" if number == 1 else f"{number:,} {noun}s"


@contextmanager
def spark_progress(spark: SparkSession, progress: Progress, what: str) -> Iterator[None]:
    """Report how far Spark is with the work that the block starts."""
    progress.step(what)
    over = Event()
    follower = Thread(target=_follow, args=(spark, progress, what, over), daemon=True)
    follower.start()
    try:
        yield
    finally:
        over.set()
        follower.join()


def _follow(spark: SparkSession, progress: Progress, what: str, over: Event) -> None:
    tracker = spark.sparkContext.statusTracker()
    while not over.wait(INTERVAL_SECONDS):
        infos = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        stages = [info for info in infos if info is not None]
        if stages:
            done = sum(stage.numCompletedTasks for stage in stages)
            progress.at(what, done, sum(stage.numTasks for stage in stages))
