"""What is remembered of the history's days when a statement fails."""

import sqlite3

import psycopg
import pytest

from duequeue.stores.sql.commands import Query
from duequeue.stores.sql.history_table import HistoryDays
from duequeue.stores.sql.settling import Settling

NOON = 12 * 3_600_000


def fail(days: HistoryDays, error: BaseException) -> list[str]:
    """Have a drop fail, and return the queries that it has asked for."""
    steps, asked = Settling(1, days).drop("key", NOON, []), []
    command = next(steps)
    while isinstance(command, Query):
        asked.append(command.name)
        command = steps.send([])
    with pytest.raises(type(error)):
        steps.throw(error)
    return asked


@pytest.mark.parametrize(
    "error",
    [
        psycopg.errors.LockNotAvailable(),
        psycopg.OperationalError("connection lost"),
        sqlite3.OperationalError("busy"),
        KeyboardInterrupt(),
    ],
    ids=repr,
)
def test_a_failure_has_nothing_to_do_with_the_days(error: BaseException) -> None:
    days = HistoryDays()
    assert len(fail(days, error)) == 2
    assert fail(days, error) == []


def test_a_day_that_is_gone_is_made_again() -> None:
    days = HistoryDays()
    for _ in range(2):
        assert len(fail(days, psycopg.errors.CheckViolation())) == 2
