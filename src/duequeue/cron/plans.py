"""Which ticks a cron wants, and when it wants to look again."""

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from duequeue.schedules.misfire import Misfire
from duequeue.schedules.schedule import Daily, Schedule, ticks
from duequeue.schedules.tick import ConfigHash, CronMessage

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

    ahead: Sequence[Draft[T]] = ()
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

    @property
    def makes_up(self) -> bool:
        """Whether missed ticks are made up for at all."""

    def ahead(self, now: datetime) -> Sequence[Draft[Any]]:
        """Return the ticks to come that belong in the queue at `now`."""

    def missed(
        self, after: datetime, now: datetime, known: AbstractSet[int]
    ) -> Sequence[Draft[Any]]:
        """Return the ticks to make up for: later than `after`, past, and not known."""

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

    @property
    def makes_up(self) -> bool:
        """What was missed, only the function could know."""
        return False

    def ahead(self, now: datetime) -> list[Draft[T]]:
        """Ask the function."""
        return [_drafted(message) for message in self.generate(now)]

    def missed(self, after: datetime, now: datetime, known: AbstractSet[int]) -> list[Draft[T]]:  # noqa: ARG002 - the plan's signature
        """Return none."""
        return []

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

    @property
    def makes_up(self) -> bool:
        """Ask the policy."""
        return self.misfire.limit > 0

    def ahead(self, now: datetime) -> list[Draft[T]]:
        """Look ahead: a daily schedule as far as it says, others by a number of ticks."""
        return [self._draft(at) for at in self._ahead(now)]

    def missed(self, after: datetime, now: datetime, known: AbstractSet[int]) -> list[Draft[T]]:
        """Look back."""
        return [self._draft(at) for at in self.misfire.chosen(self.schedule, after, now, known)]

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

    def _draft(self, at: datetime) -> Draft[T]:
        return Draft(at, lambda: CronMessage(self._payload_of(at), at))

    def _payload_of(self, at: datetime) -> T:
        return self.payload(at) if callable(self.payload) else self.payload


def _drafted(message: CronMessage[T]) -> Draft[T]:
    if not isinstance(message, CronMessage):
        raise TypeError(f"generate must return CronMessage objects, not {message!r}")
    return Draft(message.at, lambda: message)
