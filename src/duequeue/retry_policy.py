"""How long an operation is tried again while its store is unavailable."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from time import monotonic

from duequeue.backoff import check_growth, jittered
from duequeue.instants import span_to_millis


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
        check_growth(self.first, self.longest, self.factor)

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
            yield min(left, jittered(ceiling))
            ceiling = min(longest, ceiling * self.factor)
