"""What each call costs on SQLite: statements, transactions and pages written."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from statistics import median_high
from typing import Any, NamedTuple

import pytest

from duequeue import ManualClock, Queue
from duequeue.stores.sql.sqlite import session
from tests.costs.calls import (
    CHUNK,
    Call,
    Calls,
    acks,
    acks_of_many,
    batches,
    extensions,
    fill,
    offers,
    polls,
    polls_in_vain,
    polls_of_many,
    releases,
    repeated_offers,
)
from tests.costs.log_file import read_log


class Cost(NamedTuple):
    """What a call cost."""

    statements: int
    transactions: int
    pages: int


class Meter:
    """Notes the statements of every connection, and reads the log beside the file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._statements: list[str] = []

    def connect(self, *arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = sqlite3.Connection(*arguments, **options)
        connection.set_trace_callback(self._statements.append)
        return connection

    def cost_of(self, call: Call) -> Cost:
        statements, log = len(self._statements), read_log(self.path)
        call()
        written = read_log(self.path)
        return Cost(
            len(self._statements) - statements,
            written.transactions - log.transactions,
            written.pages - log.pages,
        )


@pytest.fixture
def meter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Meter:
    meter = Meter(tmp_path / "queue.db")
    monkeypatch.setattr(sqlite3, "connect", meter.connect)
    # Wound back, the log would be written over.
    monkeypatch.setattr(session, "CHECKPOINT_PAGES", 0)
    return meter


@pytest.fixture
def queue(meter: Meter, clock: ManualClock) -> Iterator[Queue[Any]]:
    with Queue.open(f"sqlite:///{meter.path}", "orders", clock=clock) as queue:
        yield queue


# Statements, transactions, pages. Many rows go in one transaction, but in a statement each.
LIMITS: dict[Calls, Cost] = {
    offers: Cost(1, 1, 3),
    repeated_offers: Cost(1, 0, 0),
    batches: Cost(CHUNK + 2, 1, 16),
    polls: Cost(1, 1, 1),
    polls_of_many: Cost(1, 1, 8),
    polls_in_vain: Cost(1, 0, 0),
    acks: Cost(1, 1, 3),
    acks_of_many: Cost(CHUNK + 2, 1, 16),
    extensions: Cost(1, 1, 1),
    releases: Cost(1, 1, 3),
}


@pytest.mark.parametrize(
    ("calls", "limit"), LIMITS.items(), ids=[calls.__name__ for calls in LIMITS]
)
def test_a_call_costs_no_more_than(
    meter: Meter, queue: Queue[Any], clock: ManualClock, calls: Calls, limit: Cost
) -> None:
    fill(queue, clock)
    laps = [meter.cost_of(call) for call in calls(queue)]
    # Once in a while a page is split; the usual lap has none of that.
    usual = Cost(*map(median_high, zip(*laps, strict=True)))
    assert usual[:2] == limit[:2]
    assert usual.pages <= limit.pages
