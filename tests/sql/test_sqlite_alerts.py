"""Who is woken when an SQLite file changes: those who wait, by other connections, not by itself."""

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from duequeue import ManualClock
from duequeue.contract.faces import Blocking, Face, LoopThread, QueueFace, SyncFace
from duequeue.contract.ledger import Ledger, open_awaiting, open_blocking
from duequeue.contract.phrases import DAY, PATIENCE, in_background
from duequeue.contract.stage import until
from duequeue.port.alerts import Alert
from duequeue.port.store import Steps
from duequeue.stores.sql.commands import SqlScript
from duequeue.stores.sql.sqlite import alerts
from duequeue.stores.sql.sqlite.alerts import FileAlerts
from duequeue.stores.sql.sqlite.session import SqliteSession
from tests.fixtures.forks import fork

OFFERS = 100
# The first look of the poll, one when the file begins to be watched, and one that finds it.
FEW = 3


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "queue.db"


@pytest.fixture
def looking_all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the watching thread see nearly every commit by itself, however fast they follow."""
    monkeypatch.setattr(alerts, "LOOK_EVERY", 0.0)


@pytest.fixture
def counted(
    face: Face, path: Path, clock: ManualClock, request: pytest.FixtureRequest
) -> Iterator[tuple[QueueFace, Ledger]]:
    """A queue of either face, and how often it asked its store for what."""
    url, counter = f"sqlite:///{path}", Counter[str]()
    with ExitStack() as opened:
        queue: Any
        if isinstance(face, SyncFace):
            queue = open_blocking(url, clock, counter, DAY)
        else:
            loop: LoopThread = request.getfixturevalue("loop_thread")
            opening = open_awaiting(url, clock, counter, DAY)
            queue = Blocking(loop.run(lambda: opening), loop)
        opened.callback(queue.close)
        yield queue, counter


def have_looked(ledger: Ledger, times: int) -> bool:
    return ledger["earliest_due"] + ledger["claim"] >= times


@pytest.mark.usefixtures("looking_all_the_time")
def test_own_offers_for_tomorrow_make_nobody_look(counted: tuple[QueueFace, Ledger]) -> None:
    queue, ledger = counted
    polling = in_background(queue.poll)
    until(partial(have_looked, ledger, 2))  # the second time since the file is watched
    for number in range(OFFERS):
        queue.offer(str(number), number, 2 * DAY)
    queue.offer("now", 1)
    delivery = polling.result(PATIENCE)
    assert delivery is not None
    assert delivery.key == "now"
    assert ledger["earliest_due"] + ledger["claim"] <= FEW


class Watched:
    """A file, a session on it, and how often the session's alerts have rung."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.session = SqliteSession(str(path), "full")
        self._alerts = FileAlerts(self.session, self._count)
        self._rings = 0
        self.commit()
        assert self.rings() == 1  # for whatever was committed before the first look

    def _count(self, alert: Alert) -> None:
        assert alert is None
        self._rings += 1

    def rings(self) -> int:
        """Look once; return how often it has rung in all."""
        self._alerts.look()
        return self._rings

    def commit(self) -> None:
        """Commit through the session."""
        self.session.run(_write)

    def commit_elsewhere(self) -> None:
        """Commit through another connection."""
        with closing(sqlite3.connect(self._path)) as connection, connection:
            connection.execute("INSERT INTO thing VALUES (1)")


def _write() -> Steps[None]:
    yield SqlScript("CREATE TABLE IF NOT EXISTS thing (value INTEGER);")
    yield SqlScript("INSERT INTO thing VALUES (1);")


@pytest.fixture
def watched(path: Path) -> Iterator[Watched]:
    watched = Watched(path)
    yield watched
    watched.session.close()


def test_own_commits_do_not_alert(watched: Watched) -> None:
    for _ in range(10):
        watched.commit()
        assert watched.rings() == 1


@pytest.mark.parametrize("before", [0, 1, 2])
@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_commit_of_another_alerts_whatever_is_committed_around_it(
    watched: Watched, before: int, after: int
) -> None:
    for _ in range(before):
        watched.commit()
    watched.commit_elsewhere()
    for _ in range(after):
        watched.commit()
    assert watched.rings() == 2
    assert watched.rings() == 2  # and once only


def test_a_commit_of_another_during_an_own_transaction_alerts(watched: Watched) -> None:
    def write_before_and_after() -> Steps[None]:
        watched.commit_elsewhere()
        yield from _write()
        watched.commit_elsewhere()

    watched.session.run(write_before_and_after)
    assert watched.rings() == 2


def test_a_new_connection_after_a_fork_alerts(watched: Watched) -> None:
    fork()
    assert watched.rings() == 2
