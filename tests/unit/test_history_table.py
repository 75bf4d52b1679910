"""Days, bounds and what is known of them: pure values."""

from datetime import UTC, datetime, timedelta

import pytest

from duequeue import DayBounds, Outcome, Settled
from duequeue.drive.steps import drive
from duequeue.port.history_table import DAY, day_of
from duequeue.stores.sql.history_table import HistoryDays

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("instant", "day"),
    [(0, 0), (1, 0), (DAY - 1, 0), (DAY, DAY), (-1, -DAY), (-DAY, -DAY), (-DAY - 1, -2 * DAY)],
)
def test_a_day_begins_at_midnight(instant: int, day: int) -> None:
    assert day_of(instant) == day


@pytest.mark.parametrize(
    ("found", "covered"),
    [
        (DayBounds(5, 9, 4), True),
        (DayBounds(0, 0, 0), True),
        (DayBounds(7, 9, 2), True),
        (DayBounds(5, 10, 4), False),
        (DayBounds(5, 9, 5), False),
        (DayBounds(1, 9, 5), False),
    ],
)
def test_bounds_cover_what_was_there_before(found: DayBounds, covered: bool) -> None:
    assert DayBounds(5, 9, 4).cover(found) is covered


def test_lateness_is_from_due_to_delivered() -> None:
    second = timedelta(seconds=1)
    assert Settled("a", AT, AT + second, AT + 5 * second, 1, Outcome.ACKED).lateness == second
    assert Settled("a", AT, None, AT, 1, Outcome.DROPPED).lateness is None


def test_known_days_are_forgotten_together() -> None:
    days = HistoryDays()
    assert 0 not in days
    drive(days.make_room(0), lambda _: [])
    drive(days.make_room(5 * DAY), lambda _: [])
    known = [day for day in range(0, 8 * DAY, DAY) if day in days]
    assert known == [0, DAY, 5 * DAY, 6 * DAY]
    assert list(days.make_room(0)) == [], "there is room already"
    days.forget()
    assert 0 not in days
