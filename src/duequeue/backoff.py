"""How long to wait between tries, and when to give up."""

import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from time import monotonic

from duequeue.instants import positive_millis, span_to_millis


@dataclass(frozen=True, slots=True)
class Backoff:
    """Jittered exponential delays between the deliveries of a message whose handler failed."""

    first: timedelta = timedelta(seconds=1)
    longest: timedelta = timedelta(hours=1)
    factor: float = 2.0

    def __post_init__(self) -> None:
        _check_growth(self.first, self.longest, self.factor)

    def delay(self, attempt: int) -> timedelta:
        """Return how long to wait after the given attempt, which is 1 for the first."""
        try:
            ceiling = min(self.longest, self.first * self.factor ** (attempt - 1))
        except OverflowError:
            ceiling = self.longest
        return _jittered(ceiling.total_seconds()) * timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Jittered exponential backoff within a total budget of time.

    A budget of zero means a single try.
    """

    budget: timedelta = timedelta(seconds=30)
    first: timedelta = timedelta(milliseconds=20)
    longest: timedelta = timedelta(seconds=2)
    factor: float = 2.0

    def __post_init__(self) -> None:
        if span_to_millis(self.budget, "budget") < 0:
            raise ValueError(f"budget must not be negative, but it is {self.budget!r}")
        _check_growth(self.first, self.longest, self.factor)

    @classmethod
    def never(cls) -> "RetryPolicy":
        """Return the policy of a single try."""
        return cls(budget=timedelta(0))

    def pauses(self, spent: float = 0.0) -> Iterator[float]:
        """Return the seconds to wait before each further try.

        The budget runs from this call, less the seconds that were spent before it.
        """
        return self._pauses(monotonic() + self.budget.total_seconds() - spent)

    def _pauses(self, gives_up_at: float) -> Iterator[float]:
        ceiling = self.first.total_seconds()
        longest = self.longest.total_seconds()
        while (left := gives_up_at - monotonic()) > 0:
            yield min(left, _jittered(ceiling))
            ceiling = min(longest, ceiling * self.factor)


def _jittered(ceiling: float) -> float:
    """Shorten a delay at random, but to no less than half, to spread the retries out."""
    return random.uniform(ceiling / 2, ceiling)  # noqa: S311 - no secret


def _check_growth(first: timedelta, longest: timedelta, factor: object) -> None:
    positive_millis(first, "first")
    positive_millis(longest, "longest")
    if not isinstance(factor, int | float) or isinstance(factor, bool):
        raise TypeError(f"factor must be a number, not {type(factor).__name__}")
    if not 1 <= factor <= sys.float_info.max:
        raise ValueError(f"factor must be at least 1, and finite, not {factor!r}")
