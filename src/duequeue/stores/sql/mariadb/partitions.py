"""The days of the history, each of which is a partition of its table.

Partitions can be added only after the last one. So a few days are added ahead, and a day for which
it is too late, such as that of a clock that was set back, shares the partition of later days. A
partition named `day_…` holds exactly one day, by its number since 1970; every other one may hold
several. Adding and dropping a partition waits for all transactions that have used the history, and
everybody else then waits behind us, so the session gives up after a second.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from duequeue.errors import StoreUnavailable
from duequeue.port.history_table import DAY
from duequeue.port.store import Steps
from duequeue.stores.sql.commands import BEGIN, Execute, Query, QueryEach, Row

DAYS_AHEAD = 7
NO_KIND = 0

LOCK_WAIT_TIMEOUT = 1205
SAME_NAME = 1517
NOT_INCREASING = 1493
NO_SUCH_PARTITION = 1507
NOT_ALLOWED = (1044, 1142, 1227)


class Partition(NamedTuple):
    """A partition, and the first instant that is no longer in it."""

    name: str
    bound: int

    @property
    def number(self) -> int:
        """The number of its last day since 1970."""
        return self.bound // DAY - 1

    @property
    def is_day(self) -> bool:
        """Whether it holds exactly one day."""
        return self.name == f"day_{self.number}"


def add_history_day(day: int) -> Steps[list[Row]]:
    """Make room for a day and those after it, unless there is room."""
    last = (yield from _partitions())[-1]
    if day < last.bound:
        return []
    days = [(start // DAY, start + DAY) for start in range(day, day + DAYS_AHEAD * DAY, DAY)]
    with ignoring(SAME_NAME, NOT_INCREASING):  # somebody else was faster
        if last.bound == day:
            yield QueryEach("add_days", {}, ("number", "bound"), days)
        else:
            first = {"first_number": day // DAY, "first_day": day}
            yield QueryEach("add_partitions", first, ("number", "bound"), days)
    return []


def drop_history_days(kind_id: int, before: int) -> Steps[list[Row]]:
    """Drop the days that end before an instant and hold rows of one kind at most.

    If the table is in use or belongs to somebody else, nothing is dropped. The caller then deletes
    row by row.
    """
    old = [part for part in (yield from _partitions()) if part.is_day and part.bound <= before]
    with ignoring(LOCK_WAIT_TIMEOUT, NO_SUCH_PARTITION, *NOT_ALLOWED):
        for partition in old:
            if not (yield from _holds_others(partition, kind_id)):
                yield Query("lock_history")
                if not (yield from _holds_others(partition, kind_id)):
                    yield from _drop(partition)
    yield Query("unlock_history")
    return []


def lock_history_day(day: int) -> Steps[list[Row]]:  # noqa: ARG001 - only the whole table can be locked
    """Keep late rows out of a day."""
    yield Query("lock_history")
    return []


def remove_history_day(day: int) -> Steps[list[Row]]:
    """Remove a day, and the days before it that are empty."""
    days = [part for part in (yield from _partitions()) if part.is_day]
    if not any(part.bound == day + DAY for part in days):
        yield Execute("delete_history_day", {"day": day})
        return []
    for part in days:
        is_it = part.bound == day + DAY
        if is_it or (part.bound <= day and not (yield from _holds_others(part, NO_KIND))):
            yield from _drop(part)
    return []


def remove_history_rows(day: int, first_id: int, last_id: int, rows: int) -> Steps[int]:
    """Lock and count rows, and delete them if they are exactly those that are meant."""
    yield BEGIN
    wanted = {"day": day, "first_id": first_id, "last_id": last_id}
    found: list[Row] = yield Query("bound_history_rows", wanted)
    if found != [(first_id, last_id, rows)]:
        return 0
    removed: int = yield Execute("delete_history_rows", wanted)
    if removed != rows:
        raise StoreUnavailable("rows were added to the history while it was being archived")
    return removed


def _drop(partition: Partition) -> Steps[None]:
    """Drop a partition, and make sure that no id in it is used again."""
    rows: list[Row] = yield Query("next_history_id")
    yield Execute("drop_partition", {"number": partition.number})
    yield Execute("keep_history_ids", {"next_id": int(rows[0][0])})


def _partitions() -> Steps[list[Partition]]:
    rows: list[Row] = yield Query("list_partitions")
    return [Partition(*row) for row in rows]


def _holds_others(partition: Partition, kind_id: int) -> Steps[bool]:
    wanted = {"number": partition.number, "kind_id": kind_id}
    rows: list[Row] = yield Query("holds_other_kinds", wanted)
    return bool(rows[0][0])


@contextmanager
def ignoring(*numbers: int) -> Iterator[None]:
    """Ignore the errors of a driver with these numbers."""
    try:
        yield
    except Exception as error:
        if not error.args or error.args[0] not in numbers:
            raise
