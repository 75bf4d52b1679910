"""What comes next, as values: clocks that stand still, and no thread in sight."""

from datetime import UTC, datetime, timedelta

import pytest

from duequeue import ManualClock
from duequeue.cron.agenda import LONGEST_WAIT, Agenda, NextUp
from duequeue.instants import to_millis

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START)


@pytest.fixture
def agenda() -> Agenda[str]:
    return Agenda()


def millis(after: timedelta) -> int:
    return to_millis(START + after)


def test_nothing_is_planned_at_first(agenda: Agenda[str]) -> None:
    assert agenda.next_up() is None
    assert len(agenda) == 0


def test_the_earliest_comes_first(agenda: Agenda[str], clock: ManualClock) -> None:
    agenda.plan("later", clock, millis(7 * SECOND))
    agenda.plan("soon", clock, millis(3 * SECOND))
    assert agenda.next_up() == NextUp("soon", 3.0)
    clock.advance(2 * SECOND)
    assert agenda.next_up() == NextUp("soon", 1.0)


def test_what_is_overdue_is_due_now(agenda: Agenda[str], clock: ManualClock) -> None:
    agenda.plan("now", clock, millis(0 * SECOND))
    assert agenda.next_up() == NextUp("now", 0.0)
    agenda.plan("overdue", clock, millis(-SECOND))
    assert agenda.next_up() == NextUp("overdue", 0.0)


def test_an_entry_is_there_once(agenda: Agenda[str], clock: ManualClock) -> None:
    agenda.plan("a", clock, millis(SECOND))
    agenda.plan("a", clock, millis(5 * SECOND))
    assert len(agenda) == 1
    assert agenda.next_up() == NextUp("a", 5.0)


def test_what_is_cancelled_is_gone(agenda: Agenda[str], clock: ManualClock) -> None:
    agenda.plan("a", clock, millis(SECOND))
    agenda.plan("b", clock, millis(2 * SECOND))
    agenda.cancel("a")
    agenda.cancel("a")
    assert "a" not in agenda
    assert "b" in agenda
    assert agenda.next_up() == NextUp("b", 2.0)


def test_each_entry_goes_by_its_own_clock(agenda: Agenda[str], clock: ManualClock) -> None:
    ahead = ManualClock(START + 10 * SECOND)
    agenda.plan("by the first", clock, millis(4 * SECOND))
    agenda.plan("by the other", ahead, millis(12 * SECOND))
    assert agenda.next_up() == NextUp("by the other", 2.0)


def test_no_wait_is_so_long_that_a_clock_could_be_set_unnoticed(
    agenda: Agenda[str], clock: ManualClock
) -> None:
    agenda.plan("far", clock, millis(timedelta(days=365_000)))
    assert agenda.next_up() == NextUp("far", LONGEST_WAIT)


def test_what_was_planned_by_a_clock_that_was_set_back_is_planned_anew(
    agenda: Agenda[str], clock: ManualClock
) -> None:
    agenda.plan("tomorrow", clock, millis(timedelta(days=1)))
    clock.set(START - timedelta(days=1))
    assert agenda.next_up() == NextUp("tomorrow", 0.0)
    agenda.plan("tomorrow", clock, millis(-timedelta(days=1) + SECOND))
    assert agenda.next_up() == NextUp("tomorrow", 1.0)
