"""Which ticks a cron wants, and when it wants to look again."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, cast

from duequeue.config_hash import ConfigHash
from duequeue.misfire import Misfire
from duequeue.schedule import Daily, Schedule, ticks
from duequeue.tick import CronMessage

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

KEPT_AHEAD = 4
LONGEST_INTERVAL = timedelta(hours=1)


class Draft(NamedTuple, Generic[T]):
    """A tick whose message is made only if it is needed."""

    at: datetime
    message: Callable[[], CronMessage[T]]


class Wanted(NamedTuple, Generic[T]):
    """The ticks that are still to come, and the missed ones to make up for."""

    ahead: Sequence[Draft[T]]
    late: Sequence[Draft[T]] = ()


class Plan(Protocol[T_co]):
    """What one installed cron is about."""

    @property
    def prefix(self) -> str:
        """What its keys begin with."""

    @property
    def config_hash(self) -> ConfigHash:
        """Which configuration it is."""

    @property
    def description(self) -> str:
        """The schedule in words, if there is one."""

    def wanted(self, now: datetime, created_until: datetime | None) -> Wanted[Any]:
        """Return the ticks that belong in the queue at `now`."""

    def next_run(self, now: datetime) -> datetime:
        """Return when to look again after a run at `now`."""


@dataclass(frozen=True)
class Generated(Generic[T]):
    """Ticks that the user's own function comes up with."""

    prefix: str
    config_hash: ConfigHash
    interval: timedelta
    generate: Callable[[datetime], Iterable[CronMessage[T]]]
    description: str = ""

    def wanted(self, now: datetime, created_until: datetime | None) -> Wanted[T]:  # noqa: ARG002 - what was missed, only the function could know
        """Ask the function."""
        return Wanted([_drafted(message) for message in self.generate(now)])

    def next_run(self, now: datetime) -> datetime:
        """Look again after the interval."""
        return now + self.interval


@dataclass(frozen=True)
class Scheduled(Generic[T]):
    """Ticks of a schedule; the payload is a value, or a function of the tick's instant."""

    prefix: str
    schedule: Schedule
    payload: T | Callable[[datetime], T]
    misfire: Misfire

    @property
    def config_hash(self) -> ConfigHash:
        """The hash of the schedule."""
        return ConfigHash.of(self.schedule)

    @property
    def description(self) -> str:
        """The schedule in words."""
        return self.schedule.describe()

    def wanted(self, now: datetime, created_until: datetime | None) -> Wanted[T]:
        """Look ahead, and back to where the ticks ended."""
        missed = [] if created_until is None else self._missed(created_until, now)
        return Wanted([*map(self._draft, self._ahead(now))], [*map(self._draft, missed)])

    def next_run(self, now: datetime) -> datetime:
        """Look again when there is a tick to add: as one passes, and never after the last."""
        ahead = self._ahead(now)
        if isinstance(self.schedule, Daily):
            return min([now + self.schedule.interval, *ahead[-1:]])
        return min([now + LONGEST_INTERVAL, *ahead[:1]])

    def _ahead(self, now: datetime) -> list[datetime]:
        if isinstance(self.schedule, Daily):
            within = list(ticks(self.schedule, now, now + self.schedule.horizon))
            return within or list(islice(ticks(self.schedule, now), 1))
        return list(islice(ticks(self.schedule, now), KEPT_AHEAD))

    def _missed(self, after: datetime, until: datetime) -> list[datetime]:
        return self.misfire.chosen(self.schedule, after, until)

    def _draft(self, at: datetime) -> Draft[T]:
        return Draft(at, lambda: CronMessage(self._payload_of(at), at))

    def _payload_of(self, at: datetime) -> T:
        if callable(self.payload):
            make = cast("Callable[[datetime], T]", self.payload)
            return make(at)
        return self.payload


def _drafted(message: CronMessage[T]) -> Draft[T]:
    if not isinstance(message, CronMessage):
        raise TypeError(f"generate must return CronMessage objects, not {message!r}")
    return Draft(message.at, lambda: message)
