"""A schedule that ends."""

from collections.abc import Iterator
from datetime import UTC, datetime

from duequeue.schedules.schedule import DescribedSchedule, EndOfTime, Walking, ticks


class Ending(Walking):
    """The ticks of another schedule up to an instant, which is the last that may tick."""

    __slots__ = ("_schedule", "_until")

    def __init__(self, schedule: DescribedSchedule, until: datetime) -> None:
        self._schedule = schedule
        self._until = until.astimezone(UTC)

    @property
    def text(self) -> str:
        """The text of the other schedule, and the end, which changes the ticks."""
        return f"{self._schedule.text}{self._end}"

    def describe(self) -> str:
        """Return the line of the other schedule, and the end."""
        return f"{self._schedule.describe()}{self._end}"

    def next_after(self, instant: datetime) -> datetime:
        """Return the first tick that is strictly later than the instant and not after the end."""
        found = next(self.ticks_after(instant), None)
        if found is None:
            raise EndOfTime(self, instant)
        return found

    def ticks_after(self, instant: datetime) -> Iterator[datetime]:
        """Return the ticks later than an instant and not after the end."""
        return ticks(self._schedule, instant, self._until)

    @property
    def _end(self) -> str:
        return f" until {self._until.isoformat(timespec='milliseconds').removesuffix('+00:00')}Z"
