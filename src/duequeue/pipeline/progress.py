"""How far a job is, reported while it runs."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import Event, Thread
from typing import Any, Protocol, TypeAlias

from pyspark.sql import SparkSession

from duequeue.spark.session import is_connect

INTERVAL_SECONDS = 0.5

# Takes the number of parts that are done, and the number of all parts.
Report: TypeAlias = Callable[[int, int], None]


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
    following = _following_server if is_connect(spark) else _following_stages
    with following(spark, partial(progress.at, what)):
        yield


@contextmanager
def _following_server(spark: SparkSession, report: Report) -> Iterator[None]:
    """Report what the server of Spark Connect sends while it works."""

    def receive(stages: Iterable[Any] | None, *_: object, **__: object) -> None:
        parts = [(stage.num_completed_tasks, stage.num_tasks) for stage in stages or ()]
        if parts:
            report(sum(done for done, _ in parts), sum(number for _, number in parts))

    handler: Any = receive
    spark.registerProgressHandler(handler)
    try:
        yield
    finally:
        spark.removeProgressHandler(handler)


@contextmanager
def _following_stages(spark: SparkSession, report: Report) -> Iterator[None]:
    """Ask Spark for its progress at intervals, and report it."""
    over = Event()
    follower = Thread(target=_follow, args=(spark, report, over), daemon=True)
    follower.start()
    try:
        yield
    finally:
        over.set()
        follower.join()


def _follow(spark: SparkSession, report: Report, over: Event) -> None:
    tracker = spark.sparkContext.statusTracker()
    while not over.wait(INTERVAL_SECONDS):
        infos = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        stages = [info for info in infos if info is not None]
        if stages:
            done = sum(stage.numCompletedTasks for stage in stages)
            report(done, sum(stage.numTasks for stage in stages))
