"""A schedule that a user wrote, made safe for the loop that serves all crons."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TypeVar

from duequeue.errors import InvalidArgument, InvalidType
from duequeue.instants import from_millis, to_millis
from duequeue.schedules.schedule import EndOfTime, Schedule, Walking, text_of

R = TypeVar("R")


class OwnSchedule(Walking):
    """A user's schedule; each answer is checked, so that no mistake makes a cron loop for ever."""

    __slots__ = ("_schedule",)

    def __init__(self, schedule: Schedule) -> None:
        if not callable(getattr(schedule, "next_after", None)):
            raise InvalidType(
                "schedule", f"must have a method next_after(instant), not be {schedule!r}"
            )
        self._schedule = schedule

    @property
    def text(self) -> str:
        """The text of the user's schedule, if it has one."""
        return text_of(self._schedule)

    def describe(self) -> str:
        """Return the user's own line, or else the text, or else the name of the class."""
        describe = getattr(self._schedule, "describe", None)
        if callable(describe):
            line = str(describe())
        else:
            line = str(getattr(self._schedule, "text", type(self._schedule).__name__))
        return line.replace("\0", "\\0").encode(errors="backslashreplace").decode()

    def next_after(self, instant: datetime) -> datetime:
        """Return the tick that the user's schedule returns, in UTC."""
        found: object = contained(lambda: self._schedule.next_after(instant))
        asked = f"{self.describe()}: next_after({instant.isoformat()})"
        if not isinstance(found, datetime):
            raise InvalidType("schedule", text=f"{asked} must return a datetime, not {found!r}")
        if found.utcoffset() is None:
            raise InvalidArgument(
                "schedule", text=f"{asked} must return a datetime with a zone, not {found!r}"
            )
        if found <= instant:
            raise InvalidArgument(
                "schedule", text=f"{asked} must return a later instant, not {found.isoformat()}"
            )
        return found.astimezone(UTC)

    def ticks_after(self, instant: datetime) -> Iterator[datetime]:
        """Return the ticks, floored to the millisecond; several in one millisecond are one tick."""
        last, following = to_millis(instant), instant
        try:
            while True:
                following = self.next_after(following)
                if (millis := to_millis(following)) > last:
                    last = millis
                    yield from_millis(millis)
        except EndOfTime:  # of a schedule of ours, on which the user's is built
            return


def contained(call: Callable[[], R]) -> R:
    """Call a function of the user's, and raise nothing worse than an `Exception`.

    A function that exits, or cancels something of its own, must not end the one thread or task
    that serves every cron.
    """
    try:
        return call()
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise RuntimeError(f"the function raised {error!r}") from error
