"""What becomes of ticks whose time passed while no node was there to create them."""

from collections import deque
from dataclasses import dataclass
from datetime import datetime, timedelta

from duequeue.schedule import Schedule, ticks

_FIRST_WINDOW = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Misfire:
    """How many of the missed ticks are made up for; it is always the latest ones.

    Use `Misfire.skip()`, `Misfire.fire_once()` or `Misfire.fire_all(limit)`.
    """

    limit: int = 0

    def __post_init__(self) -> None:
        if type(self.limit) is not int:
            raise TypeError(f"limit must be an int, not {type(self.limit).__name__}")
        if self.limit < 0:
            raise ValueError(f"limit must not be negative, not {self.limit}")

    @classmethod
    def skip(cls) -> "Misfire":
        """Let them pass."""
        return cls(0)

    @classmethod
    def fire_once(cls) -> "Misfire":
        """Make up for the latest one."""
        return cls(1)

    @classmethod
    def fire_all(cls, limit: int) -> "Misfire":
        """Make up for all of them, at most `limit`."""
        if limit == 0:
            raise ValueError("limit must be at least 1; to make up for none, use Misfire.skip()")
        return cls(limit)

    def chosen(self, schedule: Schedule, after: datetime, until: datetime) -> list[datetime]:
        """Return the ticks to make up for, of those later than `after` and not after `until`."""
        if self.limit == 0 or until <= after:
            return []
        # A schedule only looks ahead. So look ahead from ever earlier instants: a year without
        # a node must not mean to walk over all of its seconds.
        window = _FIRST_WINDOW
        while window < until - after:
            found = deque(ticks(schedule, until - window, until), maxlen=self.limit)
            if len(found) == self.limit:
                return list(found)
            window *= 2
        return list(deque(ticks(schedule, after, until), maxlen=self.limit))
