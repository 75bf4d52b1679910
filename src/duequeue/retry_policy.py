"""How long an operation is tried again while its store is unavailable."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from time import monotonic

from duequeue.backoff import check_growth, jittered
from duequeue.defaults import GROWTH
from duequeue.errors import InvalidArgument
from duequeue.instants import span_to_millis

# A healthy store answers within these seconds. If one try took the whole budget, a connection that
# is silently lost could not be replaced in time.
SHORTEST_TRY = 2.0
LONGEST_TRY = 10.0


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Jittered exponential backoff within a total budget of time.

    A budget of zero means a single try. A try that has no answer after a third of the budget is
    given up, though not before two seconds, and after ten seconds at the latest. A single try has
    ten seconds.
    """

    budget: timedelta = timedelta(seconds=30)
    first: timedelta = timedelta(milliseconds=20)
    longest: timedelta = timedelta(seconds=2)
    factor: float = GROWTH
    try_seconds: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if span_to_millis(self.budget, "budget") < 0:
            raise InvalidArgument("budget", f"must not be negative, but it is {self.budget!r}")
        check_growth(self.first, self.longest, self.factor)
        third = self.budget.total_seconds() / 3 if self.budget else LONGEST_TRY
        object.__setattr__(self, "try_seconds", min(LONGEST_TRY, max(SHORTEST_TRY, third)))

    @classmethod
    def never(cls) -> "RetryPolicy":
        """Return the policy of a single try."""
        return cls(budget=timedelta(0))

    def pauses(self, seconds: float | None = None) -> Iterator[float]:
        """Return the seconds to wait before each further try.

        They end after the given seconds, which run from this call, or else after the budget.
        """
        budget = self.budget.total_seconds() if seconds is None else seconds
        return self._pauses(monotonic() + budget)

    def _pauses(self, gives_up_at: float) -> Iterator[float]:
        ceiling = self.first.total_seconds()
        longest = self.longest.total_seconds()
        while (left := gives_up_at - monotonic()) > 0:
            yield min(left, jittered(ceiling))
            ceiling = min(longest, ceiling * self.factor)
