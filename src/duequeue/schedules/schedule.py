"""Schedules, which know the instant that comes next."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta
from itertools import takewhile
from typing import Protocol
from zoneinfo import ZoneInfo

from duequeue.errors import InvalidArgument, InvalidType
from duequeue.instants import MILLISECOND, from_millis, positive_millis, to_millis
from duequeue.schedules.daily_arguments import WEEK, checked_times, checked_weekdays
from duequeue.schedules.zones import canonical_name, name_of, wall_clock

_DAY = timedelta(days=1)
_UNITS = (
    (86_400_000, "day"),
    (3_600_000, "hour"),
    (60_000, "minute"),
    (1000, "second"),
    (1, "millisecond"),
)


class Schedule(Protocol):
    """Any object that returns the tick after an instant.

    Its ticks must not depend on the instant from which it is asked, because every node asks at
    other instants. A schedule may also have a `text`, from which `ConfigHash.of` computes its hash,
    and a method `describe()`, which returns one line for people.
    """

    def next_after(self, instant: datetime) -> datetime:
        """Return the first tick strictly later than the instant."""


class DescribedSchedule(Schedule, Protocol):
    """A schedule that describes itself, as all of ours do."""

    @property
    def text(self) -> str:
        """One line that is the same for schedules that tick alike; `ConfigHash.of` hashes it."""

    def describe(self) -> str:
        """Return one line for people, with the zone as it was given."""

    def __hash__(self) -> int:
        """Return a hash for the cache of its ticks."""


def text_of(schedule: Schedule) -> str:
    """Return the text of a schedule, or raise if it is one of the user's own without a text."""
    text = getattr(schedule, "text", None)
    if isinstance(text, str):
        return text
    raise InvalidType(
        "config_hash",
        f"cannot be computed, because {schedule!r} has no `text` that is a str: pass "
        "config_hash=ConfigHash('…') to install_schedule, and change it whenever the ticks change",
    )


class EndOfTime(ValueError):
    """A schedule has no further tick that a datetime can hold."""

    def __init__(self, schedule: DescribedSchedule, instant: datetime) -> None:
        super().__init__(
            f"{schedule.describe()}: the tick after {instant.isoformat()} "
            "lies outside the years 1 to 9999"
        )


@dataclass(frozen=True, slots=True)
class Every:
    """Ticks at the multiples of a period since the epoch."""

    period: timedelta

    def __post_init__(self) -> None:
        positive_millis(self.period, "period")
        if self.period % MILLISECOND:
            raise InvalidArgument(
                "period", f"must be a whole number of milliseconds, not {self.period!r}"
            )

    @property
    def text(self) -> str:
        """The period, in the longest unit that measures it."""
        millis = self.period // MILLISECOND
        size, unit = next(each for each in _UNITS if millis % each[0] == 0)
        count = millis // size
        return f"every {unit}" if count == 1 else f"every {count} {unit}s"

    def describe(self) -> str:
        """Return the same line, because a period has no zone."""
        return self.text

    def next_after(self, instant: datetime) -> datetime:
        """Return the first multiple of the period strictly later than the instant."""
        period = self.period // MILLISECOND
        try:
            return from_millis((to_millis(instant) // period + 1) * period)
        except OverflowError as error:
            raise EndOfTime(self, instant) from error


class Walking:
    """A schedule that has its own way to find several ticks in a row."""

    __slots__ = ()

    def ticks_after(self, instant: datetime) -> Iterator[datetime]:
        """Return the ticks later than an instant, each computed when asked for."""
        raise NotImplementedError


class OnWallClock(Walking):
    """A schedule of local times; the wall clock decides at which instant a local time comes."""

    __slots__ = ()

    zone: str
    canonical_zone: str

    @property
    def text(self) -> str:
        """The schedule in the canonical zone, for `ConfigHash.of`."""
        return self._line(self.canonical_zone)

    def describe(self) -> str:
        """Return the schedule in the zone as given."""
        return self._line(self.zone)

    def next_after(self, instant: datetime) -> datetime:
        """Return the first tick strictly later than the instant, in UTC."""
        found = next(self.ticks_after(instant), None)
        if found is None:
            raise EndOfTime(self, instant)
        return found

    def ticks_after(self, instant: datetime) -> Iterator[datetime]:
        """Return the ticks later than an instant, each computed when asked for."""
        clock = wall_clock(self.canonical_zone)
        try:
            tick = from_millis(to_millis(instant))
            local = clock.highest_shown(tick)
            while True:
                local = self._next_local(local)
                following = clock.first_shown(local)
                # Local times that the clock jumps over come together.
                if following > tick:
                    tick = following
                    yield tick
        except OverflowError:
            return

    def _next_local(self, after: datetime) -> datetime:
        """Return the first local time of the schedule that is later than a local time."""
        raise NotImplementedError

    def _line(self, zone: str) -> str:
        """Return what happens when, and the zone."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, init=False)
class Daily(OnWallClock):
    """Ticks at given local times of every day, or of some days of the week.

    `weekdays` holds names such as "mon" or "monday", or numbers as in `datetime.weekday()`, where
    Monday is 0. `horizon` is how far ahead ticks are put into the queue, and `interval` is how
    often that is renewed. Neither changes which instants tick, so neither is part of the text.
    """

    times: tuple[time, ...]
    zone: str = field(compare=False)
    canonical_zone: str = field(repr=False)
    horizon: timedelta
    interval: timedelta
    weekdays: tuple[str, ...]

    def __init__(
        self,
        times: Iterable[time | str],
        zone: str | ZoneInfo = "UTC",
        horizon: timedelta = timedelta(days=2),
        interval: timedelta = timedelta(hours=1),
        *,
        weekdays: Iterable[str | int] | None = None,
    ) -> None:
        if isinstance(zone, ZoneInfo):
            zone = name_of(zone)
        positive_millis(horizon, "horizon")
        positive_millis(interval, "interval")
        object.__setattr__(self, "times", checked_times(times))
        object.__setattr__(self, "zone", zone)
        object.__setattr__(self, "canonical_zone", canonical_name(zone))
        object.__setattr__(self, "horizon", horizon)
        object.__setattr__(self, "interval", interval)
        chosen = WEEK if weekdays is None else checked_weekdays(weekdays)
        object.__setattr__(self, "weekdays", chosen)

    def _next_local(self, after: datetime) -> datetime:
        later = bisect_right(self.times, after.time())
        if later < len(self.times) and WEEK[after.weekday()] in self.weekdays:
            return datetime.combine(after, self.times[later])
        day = after + _DAY
        while WEEK[day.weekday()] not in self.weekdays:
            day += _DAY
        return datetime.combine(day, self.times[0])

    def _line(self, zone: str) -> str:
        # Without zeros that say nothing: 07:00, 07:00:30 or 07:00:00.500.
        times = [each.isoformat().removesuffix("000").removesuffix(":00") for each in self.times]
        days = "" if self.weekdays == WEEK else f" on {', '.join(self.weekdays)}"
        return f"daily at {', '.join(times)}{days} in {zone}"


def ticks(schedule: Schedule, after: datetime, until: datetime | None = None) -> Iterator[datetime]:
    """Return the ticks later than `after` and not later than `until`, each computed when asked."""
    to_millis(after, "after")
    if isinstance(schedule, Walking):
        found = schedule.ticks_after(after)
    else:
        found = _following(schedule, after)
    if until is None:
        return found
    to_millis(until, "until")
    return takewhile(until.__ge__, found)


def _following(schedule: Schedule, tick: datetime) -> Iterator[datetime]:
    try:
        while True:
            tick = schedule.next_after(tick)
            yield tick
    except EndOfTime:
        return
