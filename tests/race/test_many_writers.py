"""Many processes at work on one database: everybody is served, `locked` is nobody's error."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from time import monotonic

import pytest

from duequeue import OfferOutcome, RetryPolicy, StoreUnavailable
from duequeue.contract.faces import QueueFace
from duequeue.contract.phrases import PATIENCE, SECOND, in_background
from duequeue.drive.retrying import LEAST_SECONDS
from duequeue.stores.sql.sqlite import session
from duequeue.stores.sql.sqlite.session import BUSY_SECONDS
from tests.race.conftest import OpenRival
from tests.race.crew import Crew
from tests.race.parts import offer_poll_ack

PROCESSES = 6
ROUNDS = 40


def test_processes_offer_poll_and_ack(open_rival: OpenRival, store_url: str, crew: Crew) -> None:
    queue = open_rival()
    parts = [partial(offer_poll_ack, store_url, str(number), ROUNDS) for number in range(PROCESSES)]
    assert crew.together(parts) == [ROUNDS] * PROCESSES
    assert queue.stats().total == 0


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
def test_a_writer_waits_for_somebody_elses_transaction(
    open_rival: OpenRival, store_url: str
) -> None:
    queue = open_rival()
    with closing(sqlite3.connect(store_url.removeprefix("sqlite:///"))) as application:
        application.execute("BEGIN IMMEDIATE")
        offering = in_background(partial(queue.offer, "a", 1))
        with pytest.raises(TimeoutError):
            offering.result(BUSY_SECONDS * 1.5)  # longer than SQLite itself is patient
        application.rollback()
        assert offering.result(PATIENCE) is OfferOutcome.CREATED


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
def test_a_writer_that_may_not_retry_is_told_who_is_busy(
    open_rival: OpenRival, store_url: str
) -> None:
    queue = open_rival(retry=RetryPolicy.never())
    path = store_url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(path)) as application:
        application.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="database is locked") as raised:
            queue.offer("a", 1)
    assert path in str(raised.value)
    assert isinstance(raised.value.__cause__, sqlite3.OperationalError)
    assert queue.offer("a", 1) is OfferOutcome.CREATED


@pytest.fixture
def held_file(open_rival: OpenRival, store_url: str) -> Iterator[QueueFace]:
    """A queue whose file another program writes to without end."""
    queue = open_rival(retry=RetryPolicy(budget=2 * SECOND))
    queue.offer("a", 1)
    with closing(sqlite3.connect(store_url.removeprefix("sqlite:///"))) as application:
        application.execute("BEGIN IMMEDIATE")
        yield queue


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
def test_reads_do_not_wait_for_writers(
    open_rival: OpenRival, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "BUSY_SECONDS", 2 * PATIENCE)  # a read that waits comes too late
    queue = open_rival()
    queue.offer("a", 1)
    with closing(sqlite3.connect(store_url.removeprefix("sqlite:///"))) as application:
        application.execute("BEGIN IMMEDIATE")
        offering = [in_background(partial(queue.offer, f"b{number}", 1)) for number in range(8)]
        assert in_background(partial(queue.contains, "a")).result(PATIENCE)
        assert not any(offer.done() for offer in offering)
        application.rollback()
    assert [offer.result(PATIENCE) for offer in offering] == [OfferOutcome.CREATED] * 8


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
def test_the_budget_does_not_grow_with_the_number_of_threads(held_file: QueueFace) -> None:
    def drop(number: int) -> float:
        began = monotonic()
        with pytest.raises(StoreUnavailable):
            held_file.drop(f"b{number}")
        return monotonic() - began

    dropping = [in_background(partial(drop, number)) for number in range(40)]
    assert max(each.result(PATIENCE) for each in dropping) < 2 + LEAST_SECONDS + BUSY_SECONDS + 1
