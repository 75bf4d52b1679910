"""The plan of a cron that follows a schedule."""

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from functools import lru_cache
from hashlib import sha256
from itertools import islice
from typing import Any, Generic, TypeVar

from duequeue.cron.tick_settings import TickSettings
from duequeue.instants import nearest_instant, to_millis
from duequeue.schedules.ending import Ending
from duequeue.schedules.schedule import Daily, DescribedSchedule, ticks
from duequeue.schedules.tick import ConfigHash, CronMessage, tick_key

T = TypeVar("T")

KEPT_AHEAD = 4
LONGEST_INTERVAL = timedelta(hours=1)


class Scheduled(Generic[T]):
    """Ticks of a schedule; the payload is a value, or a function of the tick's instant.

    A `Daily` looks ahead as far as its horizon; without one, a number of ticks is kept ahead.
    """

    def __init__(
        self,
        prefix: str,
        schedule: DescribedSchedule,
        payload: T | Callable[[datetime], T],
        settings: TickSettings,
        config_hash: ConfigHash | None = None,
    ) -> None:
        daily = schedule if isinstance(schedule, Daily) else None
        if settings.until is not None:
            schedule = Ending(schedule, settings.until)
        self.prefix = prefix
        self.config_hash = config_hash or ConfigHash.of(schedule)
        self.description = schedule.describe()
        self.makes_up = settings.misfire.limit > 0
        self.payload_is_function = callable(payload)
        self.headers = settings.headers
        self._schedule = schedule
        self._horizon = None if daily is None else daily.horizon
        self._interval = None if daily is None else daily.interval
        self._payload = payload
        self._settings = settings

    def ahead(self, now: datetime) -> list[CronMessage[Any]]:
        """Look ahead."""
        return self._messages(_ticks_ahead(self._schedule, self._horizon, now))

    def missed(
        self, after: datetime, now: datetime, known: AbstractSet[int]
    ) -> list[CronMessage[Any]]:
        """Look back, as far as the misfire policy says."""
        chosen = self._settings.misfire.chosen(self._schedule, after, now, known)
        return self._messages(chosen)

    def next_run(self, now: datetime) -> datetime:
        """Look again after the next tick, or a `Daily` after its interval or its last tick."""
        ahead = _ticks_ahead(self._schedule, self._horizon, now)
        if self._interval is not None:
            return min([now + self._interval, *ahead[-1:]])
        return min([now + LONGEST_INTERVAL, *ahead[:1]])

    def payload_for(self, at: datetime) -> Any:
        """Return the payload for an instant."""
        return self._payload(at) if callable(self._payload) else self._payload

    def _messages(self, ats: Iterable[datetime]) -> list[CronMessage[Any]]:
        payload, headers, jitter = self._payload, self.headers, self._settings.jitter
        if not jitter:
            return [CronMessage(payload, at, None, headers) for at in ats]
        return [CronMessage(payload, at, self._delayed(at, jitter), headers) for at in ats]

    def _delayed(self, at: datetime, most: int) -> datetime:
        """Return a later instant that follows from the key, so that every node finds the same."""
        key = tick_key(self.prefix, self.config_hash, at)
        drawn = int.from_bytes(sha256(key.encode()).digest()[:8], "big")
        return nearest_instant(to_millis(at) + drawn % (most + 1))


# A run asks twice, for the ticks and for the time of the next run. The crons of a node run one
# after the other, so a few answers are enough.
@lru_cache(maxsize=8)
def _ticks_ahead(
    schedule: DescribedSchedule, horizon: timedelta | None, now: datetime
) -> tuple[datetime, ...]:
    if horizon is None:
        return tuple(islice(ticks(schedule, now), KEPT_AHEAD))
    within = tuple(ticks(schedule, now, now + horizon))
    return within or tuple(islice(ticks(schedule, now), 1))
