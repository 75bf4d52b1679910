"""Telling how far a job is."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Protocol

from pyspark.sql import SparkSession

INTERVAL_SECONDS = 0.5


class Progress(Protocol):
    """Whoever wants to know."""

    def step(self, what: str) -> None:
        """Something begins."""

    def at(self, what: str, done: int, parts: int) -> None:
        """So many of its parts are done."""

    def still(self, line: str) -> None:
        """It goes on, and nobody knows for how long."""


class Silence:
    """Nobody wants to know."""

    def step(self, what: str) -> None:
        """Say nothing."""

    def at(self, what: str, done: int, parts: int) -> None:
        """Say nothing."""

    def still(self, line: str) -> None:
        """Say nothing."""


@contextmanager
def following(spark: SparkSession, progress: Progress, what: str) -> Iterator[None]:
    """Tell how far Spark is with what the block asks of it."""
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
