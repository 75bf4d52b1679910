"""The policy for missed ticks, whose time passed while no node was there to create them."""

from collections import deque
from collections.abc import Container
from dataclasses import dataclass
from datetime import datetime, timedelta

from duequeue.errors import InvalidArgument, InvalidType
from duequeue.instants import to_millis
from duequeue.schedules.schedule import Schedule, ticks

MOST = 2**31 - 1
_FIRST_WINDOW = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Misfire:
    """How many of the missed ticks are made up for, always the latest ones.

    Use `Misfire.skip()`, `Misfire.fire_once()` or `Misfire.fire_all(limit)`.
    """

    limit: int = 0

    def __post_init__(self) -> None:
        if type(self.limit) is not int:
            raise InvalidType("limit", f"must be an int, not {type(self.limit).__name__}")
        if not 0 <= self.limit <= MOST:
            raise InvalidArgument("limit", f"must be a number from 0 to {MOST}, not {self.limit}")

    @classmethod
    def skip(cls) -> "Misfire":
        """Make up for none of them."""
        return cls(0)

    @classmethod
    def fire_once(cls) -> "Misfire":
        """Make up for the latest one."""
        return cls(1)

    @classmethod
    def fire_all(cls, limit: int) -> "Misfire":
        """Make up for all of them, or for the latest `limit` if there are more."""
        if limit == 0:
            raise InvalidArgument(
                "limit", "must be at least 1; to make up for none, use Misfire.skip()"
            )
        return cls(limit)

    def chosen(
        self, schedule: Schedule, after: datetime, until: datetime, known: Container[int] = ()
    ) -> list[datetime]:
        """Return the ticks to make up for, in (`after`, `until`] and without the known ones."""
        if self.limit == 0 or until <= after:
            return []
        # A schedule can only look ahead, so this looks ahead from ever earlier instants. After a
        # year without a node, it must not walk over all of that year's seconds.
        window = _FIRST_WINDOW
        while window < until - after:
            found = self._latest(schedule, until - window, until, known)
            if len(found) == self.limit:
                return found
            window *= 2
        return self._latest(schedule, after, until, known)

    def _latest(
        self, schedule: Schedule, after: datetime, until: datetime, known: Container[int]
    ) -> list[datetime]:
        missed = (tick for tick in ticks(schedule, after, until) if to_millis(tick) not in known)
        return list(deque(missed, maxlen=self.limit))
