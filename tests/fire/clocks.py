"""The clocks that are injected into the queues of a round."""

from collections.abc import Callable
from datetime import datetime
from time import monotonic_ns

from duequeue import ManualClock
from duequeue.instants import from_millis, to_millis


class SkewedClock:
    """A clock that runs with the machine's, ahead of it or behind, and can be made to jump."""

    def __init__(self, epoch: int, skew: int) -> None:
        self._epoch = epoch
        self._skew = skew

    def now(self) -> datetime:
        return from_millis(self.read())

    def read(self) -> int:
        """Return the present instant in milliseconds since 1970."""
        return self._epoch + self._skew + monotonic_ns() // 1_000_000

    def jump(self, by: int) -> None:
        self._skew += by


def reader_of(clock: ManualClock) -> Callable[[], int]:
    """Return a function that reads a manual clock, in milliseconds since 1970."""
    return lambda: to_millis(clock.now())
