"""Which ticks a cron wants, and when it wants to look again."""

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import islice
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from duequeue.schedules.crontab import Crontab
from duequeue.schedules.misfire import Misfire
from duequeue.schedules.schedule import Daily, Every, ticks
from duequeue.schedules.tick import ConfigHash, CronMessage

T = TypeVar("T")
R = TypeVar("R")

OurSchedule: TypeAlias = Daily | Every | Crontab

KEPT_AHEAD = 4
LONGEST_INTERVAL = timedelta(hours=1)


class Plan(Protocol):
    """Which ticks one installed cron wants, and when it looks again."""

    @property
    def prefix(self) -> str:
        """What the keys of its ticks begin with."""

    @property
    def config_hash(self) -> ConfigHash:
        """Which configuration it is."""

    @property
    def description(self) -> str:
        """The schedule in words, if there is one."""

    @property
    def makes_up(self) -> bool:
        """Whether missed ticks are made up for at all."""

    @property
    def payload_is_function(self) -> bool:
        """Whether its messages hold a function of the tick's instant that makes the payload.

        Most runs find that the ticks are there already, and need no payload.
        """

    def ahead(self, now: datetime) -> Sequence[CronMessage[Any]]:
        """Return the ticks to come that belong in the queue at `now`."""

    def missed(
        self, after: datetime, now: datetime, known: AbstractSet[int]
    ) -> Sequence[CronMessage[Any]]:
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
    makes_up: bool = False  # only the function could know what was missed
    payload_is_function: bool = False

    def ahead(self, now: datetime) -> list[CronMessage[T]]:
        """Call the function."""
        messages = contained(lambda: list(self.generate(now)))
        for message in messages:
            if not isinstance(message, CronMessage):
                raise TypeError(f"generate must return CronMessage objects, not {message!r}")
        return messages

    def missed(
        self,
        after: datetime,  # noqa: ARG002 - the plan's signature
        now: datetime,  # noqa: ARG002 - likewise
        known: AbstractSet[int],  # noqa: ARG002 - likewise
    ) -> list[CronMessage[T]]:
        """Return no ticks."""
        return []

    def next_run(self, now: datetime) -> datetime:
        """Look again after the interval."""
        return now + self.interval


class Scheduled(Generic[T]):
    """Ticks of a schedule; the payload is a value, or a function of the tick's instant."""

    def __init__(
        self,
        prefix: str,
        schedule: OurSchedule,
        payload: T | Callable[[datetime], T],
        misfire: Misfire,
    ) -> None:
        self.prefix = prefix
        self.config_hash = ConfigHash.of(schedule)
        self.description = schedule.describe()
        self.makes_up = misfire.limit > 0
        self.payload_is_function = callable(payload)
        self._schedule = schedule
        self._payload = payload
        self._misfire = misfire

    def ahead(self, now: datetime) -> list[CronMessage[Any]]:
        """Look ahead: a daily schedule as far as it says, others by a number of ticks."""
        return [CronMessage(self._payload, at) for at in _ticks_ahead(self._schedule, now)]

    def missed(
        self, after: datetime, now: datetime, known: AbstractSet[int]
    ) -> list[CronMessage[Any]]:
        """Look back, as far as the misfire policy says."""
        chosen = self._misfire.chosen(self._schedule, after, now, known)
        return [CronMessage(self._payload, at) for at in chosen]

    def next_run(self, now: datetime) -> datetime:
        """Look again after the next tick, or a `Daily` after its interval or its last tick."""
        ahead = _ticks_ahead(self._schedule, now)
        if isinstance(self._schedule, Daily):
            return min([now + self._schedule.interval, *ahead[-1:]])
        return min([now + LONGEST_INTERVAL, *ahead[:1]])


# A run asks twice, for the ticks and for the time of the next run. Nodes that serve many crons
# run one after the other, so the last answers are enough.
@lru_cache(maxsize=8)
def _ticks_ahead(schedule: OurSchedule, now: datetime) -> tuple[datetime, ...]:
    if isinstance(schedule, Daily):
        within = tuple(ticks(schedule, now, now + schedule.horizon))
        return within or tuple(islice(ticks(schedule, now), 1))
    return tuple(islice(ticks(schedule, now), KEPT_AHEAD))


def contained(call: Callable[[], R]) -> R:
    """Call a function of the user's, and let nothing worse than an error out of it.

    A function that exits, or cancels something of its own, must not end the one thread or task
    that serves every cron.
    """
    try:
        return call()
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise RuntimeError(f"the function raised {error!r}") from error
