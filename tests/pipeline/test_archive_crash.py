"""`archive` ends at any point, and goes on when it is run again: each row once, none lost."""

import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from duequeue import History, ManualClock, Queue
from duequeue.contract.fixtures import START
from duequeue.pipeline import archive
from duequeue.pipeline.archiving.batches import Batches
from duequeue.pipeline.folder import Folder
from tests.pipeline.settling import in_archive, in_database, settle

NEXT_DAY = START + timedelta(days=1)
DAY = "2026-03-01"


class Crash(BaseException):
    """The end of the process, as far as the code under test can tell."""


def before(subject: type, name: str, call: int = 1) -> Callable[[pytest.MonkeyPatch], None]:
    """Crash where this is called for that time."""

    def install(patch: pytest.MonkeyPatch) -> None:
        real, calls = getattr(subject, name), iter(range(1, 1000))

        def crash(*given: Any) -> Any:
            if next(calls) == call:
                raise Crash
            return real(*given)

        patch.setattr(subject, name, crash)

    return install


def after(subject: type, name: str) -> Callable[[pytest.MonkeyPatch], None]:
    """Crash where this has just been done."""

    def install(patch: pytest.MonkeyPatch) -> None:
        real = getattr(subject, name)

        def crash(*given: Any) -> Any:
            real(*given)
            raise Crash

        patch.setattr(subject, name, crash)

    return install


# The files moved are: the manifest to be written, one for each of two queues, the manifest.
POINTS = {
    "before anything is staged": before(Batches, "stage"),
    "staged, not counted": after(Batches, "stage"),
    "while the manifest is written": before(Folder, "move"),
    "sealed": after(Batches, "seal"),
    "between two moves": before(Folder, "move", call=3),
    "moved, but for the manifest": before(Folder, "move", call=4),
    "all in place, not cleared away": before(Batches, "discard", call=3),
    "published": after(Batches, "publish"),
    "before the removal": before(History, "remove_day"),
    "after the removal": after(History, "remove_day"),
}


@pytest.fixture
def other(url: str, clock: ManualClock) -> Any:
    """A second queue that keeps its history."""
    with Queue.open(url, "invoices", clock=clock, history=True) as other:
        yield other


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("point", POINTS)
def test_each_row_is_archived_once(
    spark: SparkSession, url: str, queue: Queue[Any], other: Queue[Any], folder: Path, point: str
) -> None:
    settle(queue, "a", "b")
    settle(other, "c")
    clock = ManualClock(NEXT_DAY)
    with pytest.MonkeyPatch.context() as patch:
        POINTS[point](patch)
        with pytest.raises(Crash):
            archive(spark, url=url, folder=folder, clock=clock)
    settle(queue, "late")
    assert archive(spark, url=url, folder=folder, clock=clock).unfinished == []
    assert in_archive(spark, folder) == [
        (DAY, "invoices", "c"),
        (DAY, "orders", "a"),
        (DAY, "orders", "b"),
        (DAY, "orders", "late"),
    ]
    assert in_database(url) == []
    assert {each.name for each in folder.iterdir()} == {"_lock", f"day={DAY}"}


# Kills itself, as the kernel would, where the named method is called for that time.
PROGRAM = """
import os, signal, sys
from datetime import datetime
from duequeue import History, ManualClock
from duequeue.pipeline import archive
from duequeue.pipeline.folder import Folder
from duequeue.spark import local_session

url, folder, now, method, call = sys.argv[1:]
subject, name = {"move": (Folder, "move"), "remove": (History, "remove_day")}[method]
real, calls = getattr(subject, name), iter(range(1, 1000))

def killed(*given):
    if next(calls) == int(call):
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*given)

setattr(subject, name, killed)
spark = local_session(cores="1", memory="512m")
archive(spark, url=url, folder=folder, clock=ManualClock(datetime.fromisoformat(now)))
"""


@pytest.mark.parametrize(
    ("url", "point"), [("sqlite", ("move", "3")), ("postgres", ("remove", "1"))], indirect=["url"]
)
def test_a_driver_that_is_killed_loses_nothing(
    spark: SparkSession,
    url: str,
    queue: Queue[Any],
    other: Queue[Any],
    folder: Path,
    point: tuple[str, str],
) -> None:
    settle(queue, "a", "b")
    settle(other, "c")
    given = [url, str(folder), NEXT_DAY.isoformat(), *point]
    killed = subprocess.run(
        [sys.executable, "-c", PROGRAM, *given], capture_output=True, text=True, check=False
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert in_database(url) == ["a", "b", "c"]
    archive(spark, url=url, folder=folder, clock=ManualClock(NEXT_DAY))
    assert in_archive(spark, folder) == [
        (DAY, "invoices", "c"),
        (DAY, "orders", "a"),
        (DAY, "orders", "b"),
    ]
    assert in_database(url) == []
