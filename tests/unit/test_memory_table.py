"""The memory store's table: due order, leases, and timers that do not grow for ever."""

import pytest

from duequeue.port.store import Record
from duequeue.stores.memory.table import TIMERS, MemoryMessage, MemoryTable
from tests.timers.containers import containers_of


@pytest.fixture(params=TIMERS)
def table(request: pytest.FixtureRequest) -> MemoryTable:
    return MemoryTable(TIMERS[request.param])


def add(table: MemoryTable, key: str, due_at: int) -> MemoryMessage:
    table.add(Record(key, b"", due_at))
    return table.by_key[key]


def take_all(table: MemoryTable, now: int) -> list[str]:
    """Take what is due, and lease it for ever."""
    taken = []
    while (entry := table.take_due(now)) is not None:
        table.lease(entry, 10**9)
        taken.append(entry.key)
    return taken


def test_due_order_then_insertion_order(table: MemoryTable) -> None:
    for key, due_at in [("c", 2), ("a", 1), ("d", 2), ("e", 4), ("b", 1)]:
        add(table, key, due_at)
    assert take_all(table, 0) == []
    assert take_all(table, 2) == ["a", "b", "c", "d"]
    assert take_all(table, 2) == []
    assert take_all(table, 4) == ["e"]


def test_a_lease_that_ran_out_returns_to_its_place(table: MemoryTable) -> None:
    first, second = add(table, "first", 1), add(table, "second", 2)
    table.lease(first, 100)
    table.lease(second, 50)
    assert table.take_due(49) is None
    assert table.take_due(100) is first
    table.lease(first, 1000)
    assert table.take_due(100) is second


def test_a_clock_set_back_does_not_end_a_lease(table: MemoryTable) -> None:
    entry = add(table, "a", 1)
    table.lease(entry, 100)
    other = add(table, "b", 2)
    assert table.take_due(100) is entry
    table.lease(entry, 200)
    assert table.take_due(150) is other
    table.reschedule(other, 2)
    assert table.take_due(50) is other


def test_rescheduling_moves(table: MemoryTable) -> None:
    entry = add(table, "a", 1)
    add(table, "b", 2)
    table.reschedule(entry, 3)
    assert take_all(table, 3) == ["b", "a"]


def test_removed_messages_are_passed_by(table: MemoryTable) -> None:
    entry = add(table, "a", 1)
    add(table, "b", 2)
    assert table.remove(entry) == entry.id
    assert take_all(table, 2) == ["b"]
    assert "a" not in table.by_key


def test_next_due_is_after_now(table: MemoryTable) -> None:
    assert table.next_due(0) is None
    add(table, "a", 5)
    add(table, "b", 9)
    assert [table.next_due(now) for now in (4, 5, 8, 9)] == [5, 9, 9, None]


def test_clear_counts(table: MemoryTable) -> None:
    add(table, "a", 1)
    table.lease(add(table, "b", 1), 100)
    assert table.clear() == 2
    assert take_all(table, 1000) == []


def test_timers_do_not_keep_what_was_moved(table: MemoryTable) -> None:
    entry = add(table, "a", 0)
    for due_at in range(1000):
        table.reschedule(entry, due_at)
        table.lease(entry, due_at + 1)
    assert sum(map(len, containers_of(table))) < 300
    assert table.take_due(1000) is entry
