"""The history of a whole database, by UTC day and in ranges of ids, for archiving."""

from datetime import date, datetime
from functools import partial
from typing import NamedTuple, TypeVar

from duequeue.backends import backend_for
from duequeue.clock import Clock, SystemClock, checked_clock
from duequeue.drive import running
from duequeue.errors import InvalidArgument, InvalidType
from duequeue.flows.arguments import (
    checked_flag,
    checked_limit,
    checked_retry,
)
from duequeue.instants import EPOCH, from_millis, to_millis
from duequeue.port.history_table import (
    DAY,
    BurialReason,
    DayBounds,
    HistoryTable,
    ScheduledHour,
    SettledRow,
)
from duequeue.port.store import Backend, Operation, Session
from duequeue.process.lifetime import Closing, Lifetime
from duequeue.retry_policy import RetryPolicy

T = TypeVar("T")


class HistoryDay(NamedTuple):
    """A UTC day on which messages of a queue were settled; `kind` is its name and payload type."""

    day: date
    kind: str


class History(Closing):
    """The settled messages of every queue in one database that was opened with `history=True`.

    Threads may share it. Close it, or use it in a `with` block.
    """

    def __init__(
        self,
        backend: Backend,
        table: HistoryTable,
        session: Session,
        clock: Clock,
        retry: RetryPolicy,
    ) -> None:
        self._backend = backend
        self._table = table
        self._session = session
        self._clock = clock
        self._retry = retry
        self._lifetime = Lifetime(repr(self))

    @classmethod
    def open(
        cls,
        url: str,
        *,
        clock: Clock | None = None,
        retry: RetryPolicy | None = None,
        migrate: bool = True,
        token: str | None = None,
    ) -> "History":
        """Open the history in the database that the URL names."""
        backend = backend_for(url, token)
        policy = checked_retry(RetryPolicy() if retry is None else retry)
        given_clock = checked_clock(SystemClock() if clock is None else clock)
        open_table = partial(backend.open_history, migrate=checked_flag(migrate, "migrate"))
        session = backend.session()
        try:
            table = running.run(session, open_table, policy)
        except BaseException:
            session.close()
            raise
        return cls(backend, table, session, given_clock, policy)

    def days(self) -> list[HistoryDay]:
        """Return the days on which messages were settled, with their queues, the oldest first."""
        return [
            HistoryDay(from_millis(day).date(), kind) for day, kind in self._run(self._table.days)
        ]

    def day_bounds(self, day: date) -> DayBounds:
        """Count the rows of a day, and return their first and last id."""
        return self._run(partial(self._table.day_bounds, _day_millis(day)))

    def day_rows(self, day: date, after_id: int, until_id: int, limit: int) -> list[SettledRow]:
        """Read up to `limit` rows of a day by id, above `after_id` and up to `until_id`."""
        for argument, value in (("after_id", after_id), ("until_id", until_id)):
            if type(value) is not int:
                raise InvalidType(argument, f"must be an int, not {type(value).__name__}")
        of = (_day_millis(day), after_id, until_id, checked_limit(limit))
        return self._run(partial(self._table.day_rows, *of))

    def remove_day(self, day: date, bounds: DayBounds) -> bool:
        """Remove a day that is over, as a whole.

        Return False, and remove nothing, if rows have come late that `bounds` do not cover.
        """
        begins = _day_millis(day)
        _check(bounds)
        if begins + DAY > to_millis(self._clock.now(), "clock.now()"):
            raise InvalidArgument(
                "day", f"must be over before it is removed, but {day} is not, in UTC"
            )
        return self._run(partial(self._table.remove_day, begins, bounds))

    def remove_rows(self, day: date, bounds: DayBounds) -> bool:
        """Remove the rows of a day between two ids; the day need not be over.

        Return False, and remove nothing, if their number is not exactly that of `bounds`.
        """
        begins = _day_millis(day)
        _check(bounds)
        return self._run(partial(self._table.remove_rows, begins, bounds))

    def kinds(self) -> list[str]:
        """Return the kind of every queue in the database, as `name|payload type`."""
        return self._run(self._backend.kinds)

    def burial_reasons(self, since: datetime, limit: int = 100) -> list[BurialReason]:
        """Count the messages that were buried since an instant and still are, by their reason.

        The most frequent reasons come first.
        """
        of = (to_millis(since, "since"), checked_limit(limit))
        return self._run(partial(self._table.burial_reasons, *of))

    def scheduled(self, now: datetime, until: datetime) -> list[ScheduledHour]:
        """Count the live messages of every queue that are due before `until`, by hour.

        Overdue messages count in the hour of `now`. The database counts, over one connection.
        """
        of = (to_millis(now, "now"), to_millis(until, "until"))
        return self._run(partial(self._table.scheduled, *of))

    def close(self) -> None:
        """Give the connections back; closing twice is fine."""
        if self._lifetime.begin_closing():
            self._lifetime.end()
            self._session.close()

    def __repr__(self) -> str:
        return f"<History at {self._backend.address}>"

    def _run(self, operation: Operation[T]) -> T:
        self._lifetime.check()
        return running.run(self._session, operation, self._retry)


def _day_millis(day: date) -> int:
    if isinstance(day, datetime) or not isinstance(day, date):
        raise InvalidType("day", f"must be a date, which means a UTC day, not {day!r}")
    return (day - EPOCH.date()).days * DAY


def _check(bounds: DayBounds) -> None:
    if not isinstance(bounds, DayBounds):
        raise InvalidType(
            "bounds", f"must be DayBounds, as day_bounds returns them, not {bounds!r}"
        )
