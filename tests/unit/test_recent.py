"""What is new at the end of a history."""

from datetime import UTC, datetime, timedelta

from duequeue import Outcome, Settled
from duequeue.cli.recent import SMALLEST_WINDOW, Recent

START = datetime(2026, 3, 1, tzinfo=UTC)


def row(number: int, key: str = "a") -> Settled:
    at = START + timedelta(seconds=number)
    return Settled(key, START, at, at, 1, Outcome.ACKED)


class History:
    """Rows, of which the newest come first."""

    def __init__(self, *rows: Settled) -> None:
        self.rows = list(rows)

    def look(self, limit: int) -> list[Settled]:
        return sorted(self.rows, key=lambda each: each.settled_at, reverse=True)[:limit]


def test_the_newest_rows_come_in_order() -> None:
    recent = Recent(History(*map(row, range(5))).look, 3)
    assert recent.newest(3) == [row(2), row(3), row(4)]
    assert recent.news() == []


def test_new_rows_come_once() -> None:
    history = History(row(1))
    recent = Recent(history.look, 10)
    history.rows += [row(3), row(2)]
    assert recent.news() == [row(2), row(3)]
    assert recent.news() == []


def test_a_row_that_commits_late_comes_too() -> None:
    history = History(row(1), row(5))
    recent = Recent(history.look, 10)
    history.rows.append(row(3))
    assert recent.news() == [row(3)]


def test_equal_rows_are_two() -> None:
    history = History(row(1))
    recent = Recent(history.look, 10)
    history.rows.append(row(1))
    assert recent.news() == [row(1)]


def test_many_new_rows_all_come() -> None:
    history = History(*map(row, range(SMALLEST_WINDOW)))
    recent = Recent(history.look, 1)
    more = [row(number) for number in range(SMALLEST_WINDOW, 15 * SMALLEST_WINDOW)]
    history.rows += more
    assert recent.news() == more


def test_old_rows_that_come_into_view_are_not_new() -> None:
    history = History(*map(row, range(3 * SMALLEST_WINDOW)))
    recent = Recent(history.look, 1)
    del history.rows[-SMALLEST_WINDOW // 2 :]  # archived meanwhile
    assert recent.news() == []
