"""How many callbacks an endpoint may get per second, and how many a process sends at a time."""

from collections.abc import Callable, Hashable
from math import ceil, isfinite

from duequeue.errors import InvalidArgument, InvalidType

_NANOS = 1_000_000


class RateLimit:
    """Calls per second, evenly spread; after a pause, up to `burst` of them begin at once.

    This is the generic cell rate algorithm. It keeps one instant: the time at which all calls so
    far would have begun if each had waited its turn. All times are milliseconds, passed in.
    """

    def __init__(self, per_second: float, burst: int | None = None) -> None:
        for name, number in (("per_second", per_second), ("burst", burst or 1)):
            if not isinstance(number, int | float):
                raise InvalidType(name, f"must be a number, not {number!r}")
        if not (isfinite(per_second) and per_second > 0):
            raise InvalidArgument(
                "per_second", f"must be above zero and finite, not {per_second!r}"
            )
        # The calls of a tenth of a second, so that a sleep that ends late does not lower the rate.
        chosen = max(1, ceil(per_second / 10)) if burst is None else burst
        if chosen < 1:
            raise InvalidArgument("burst", f"must be at least 1, not {burst!r}")
        self._interval = ceil(1_000 * _NANOS / per_second)
        self._tolerance = self._interval * (chosen - 1)
        self._next = 0

    def wait(self, now: int) -> int:
        """Return in how many milliseconds the next call may begin; 0 means now."""
        early = self._turn(now) - self._tolerance - now * _NANOS
        return max(0, -(-early // _NANOS))

    def free(self, now: int) -> int:
        """Return how many calls may begin now."""
        room = now * _NANOS + self._tolerance - self._turn(now)
        return 0 if room < 0 else room // self._interval + 1

    def take(self, now: int) -> None:
        """Count a call that begins now."""
        self._next = self._turn(now) + self._interval

    def _turn(self, now: int) -> int:
        """Return the instant of the next call's turn.

        It never lies further ahead than a full burst, so that a clock that was set back does not
        stop the calls.
        """
        nanos = now * _NANOS
        return min(max(self._next, nanos), nanos + self._tolerance + self._interval)


class Slots:
    """Counts calls; those who find no free slot get one in turn."""

    def __init__(self, most: int) -> None:
        if not isinstance(most, int):
            raise InvalidType("calls", f"must be a whole number, not {most!r}")
        if most < 1:
            raise InvalidArgument("calls", f"must be a whole number of at least 1, not {most!r}")
        self.free = most
        self._waiting: dict[Hashable, Callable[[], None]] = {}

    def take(self) -> None:
        """Count a call that begins; the caller has seen that one is free."""
        self.free -= 1

    def give(self) -> None:
        """Count a call that has ended, and let the next ones begin theirs."""
        self.free += 1
        while self.free > 0 and self._waiting:
            self._waiting.pop(next(iter(self._waiting)))()

    def wait(self, who: Hashable, begin: Callable[[], None]) -> None:
        """Call `begin` when a slot is free and all who waited before had their turn."""
        self._waiting.setdefault(who, begin)

    def has_waiting(self, who: Hashable) -> bool:
        """Return whether somebody waits for a turn."""
        return who in self._waiting
