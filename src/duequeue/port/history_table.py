"""The port of the history: what settled messages left behind, in a database as a whole.

A day is a UTC day, named by the millisecond at which it begins.
"""

from collections.abc import Generator
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

T = TypeVar("T")

HistorySteps: TypeAlias = Generator[Any, Any, T]

DAY = 24 * 60 * 60 * 1000


def day_of(instant: int) -> int:
    """Return the day in which an instant lies."""
    return instant - instant % DAY


class SettledRow(NamedTuple):
    """What a settled message left behind. Ids ascend as rows are written.

    `kind` is the queue's name and its payload type, `delivered_at` when the lease began that
    settled it: None for what was dropped or replaced, whoever held it.
    """

    id: int
    kind: str
    key: str
    asked_at: int
    delivered_at: int | None
    settled_at: int
    attempts: int
    outcome: str


class DayBounds(NamedTuple):
    """The first and the last id of a day's rows, and how many there are; without any, all are 0."""

    first_id: int
    last_id: int
    rows: int

    def cover(self, found: "DayBounds") -> bool:
        """Tell whether what is found there now was there before."""
        return found.last_id <= self.last_id and found.rows <= self.rows


class HistoryTable(Protocol):
    """The history of every queue in one database."""

    def days(self) -> HistorySteps[list[tuple[int, str]]]:
        """Return which days have rows of which kinds, in that order."""

    def day_bounds(self, day: int) -> HistorySteps[DayBounds]:
        """Count the rows of a day, of all kinds."""

    def day_rows(
        self, day: int, after_id: int, until_id: int, limit: int
    ) -> HistorySteps[list[SettledRow]]:
        """Return rows of a day, of all kinds, with ids in `(after_id, until_id]`, by id."""

    def remove_day(self, day: int, bounds: DayBounds) -> HistorySteps[bool]:
        """Remove a day, all of it or, if rows have come that the bounds do not cover, nothing."""

    def remove_rows(self, day: int, bounds: DayBounds) -> HistorySteps[bool]:
        """Remove the rows of a day between two ids, if they are exactly as many; tell if so."""

    def kinds(self) -> HistorySteps[list[str]]:
        """Return every kind of message that the database knows, settled or not."""
