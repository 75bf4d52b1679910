"""The port of the history: the records of settled messages, of all queues in one database.

A day is a UTC day, identified by the millisecond at which it begins.
"""

from collections.abc import Generator
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

T = TypeVar("T")

HistorySteps: TypeAlias = Generator[Any, Any, T]

DAY = 24 * 60 * 60 * 1000
HOUR = 60 * 60 * 1000


def day_of(instant: int) -> int:
    """Return the day in which an instant lies."""
    return instant - instant % DAY


class SettledRow(NamedTuple):
    """The record of a settled message. Ids ascend as rows are written.

    `kind` is the queue's name and its payload type. `delivered_at` is when the lease began under
    which the message was settled; it is None for one that was dropped or replaced, leased or not.
    `handler_ms` is None unless a consumer or the pipeline handled the message.
    """

    id: int
    kind: str
    key: str
    asked_at: int
    delivered_at: int | None
    settled_at: int
    attempts: int
    outcome: str
    handler_ms: int | None = None


class DayBounds(NamedTuple):
    """The first and last id of a day's rows, and their number; all are 0 if there are no rows."""

    first_id: int
    last_id: int
    rows: int

    def cover(self, found: "DayBounds") -> bool:
        """Return whether the rows found now are all among these."""
        return found.last_id <= self.last_id and found.rows <= self.rows


class BurialReason(NamedTuple):
    """Why messages of a kind were buried, how many there are, and when the last one was buried."""

    kind: str
    reason: str
    burials: int
    last_at: int


class ScheduledHour(NamedTuple):
    """The messages of a kind that fall due in an hour, and how many of them are overdue.

    `begins_at` is the instant at which the hour begins.
    """

    kind: str
    begins_at: int
    messages: int
    overdue: int


class HistoryTable(Protocol):
    """The history of every queue in one database."""

    def days(self) -> HistorySteps[list[tuple[int, str]]]:
        """Return each day with each kind that has rows on it, ordered by day and kind."""

    def day_bounds(self, day: int) -> HistorySteps[DayBounds]:
        """Count the rows of a day, of all kinds, and return their first and last id."""

    def day_rows(
        self, day: int, after_id: int, until_id: int, limit: int
    ) -> HistorySteps[list[SettledRow]]:
        """Return rows of a day, of all kinds, with ids in `(after_id, until_id]`, by id."""

    def remove_day(self, day: int, bounds: DayBounds) -> HistorySteps[bool]:
        """Remove a whole day; return False, and remove nothing, if the bounds miss newer rows."""

    def remove_rows(self, day: int, bounds: DayBounds) -> HistorySteps[bool]:
        """Remove the rows between two ids; return False, and remove none, if the count differs."""

    def burial_reasons(self, since: int, limit: int) -> HistorySteps[list[BurialReason]]:
        """Count the messages that were buried since an instant and still are, by their reason.

        The most frequent reasons come first, and of equally frequent ones the latest.
        """

    def scheduled(self, now: int, until: int) -> HistorySteps[list[ScheduledHour]]:
        """Count the live messages of every kind that are due before `until`, by kind and hour.

        Overdue messages count in the hour of `now`. The rows are ordered by hour and kind.
        """
