"""How long a message waits after its handler failed."""

import random
import re
import sys
from dataclasses import dataclass
from datetime import timedelta

from duequeue.defaults import GROWTH
from duequeue.durations import parse_duration
from duequeue.errors import InvalidArgument, InvalidType
from duequeue.instants import positive_millis


@dataclass(frozen=True, slots=True)
class Backoff:
    """Jittered exponential delays between the deliveries of a message whose handler failed."""

    first: timedelta = timedelta(seconds=1)
    longest: timedelta = timedelta(hours=1)
    factor: float = GROWTH

    def __post_init__(self) -> None:
        check_growth(self.first, self.longest, self.factor)

    @classmethod
    def parse(cls, text: str, default: "Backoff | None" = None) -> "Backoff":
        """Read FIRST:LONGEST:FACTOR, such as 10s:1d:5; commas do as well.

        The factor may be left out, and the longest delay too; then the default's holds.
        """
        if not isinstance(text, str):
            raise InvalidType("backoff", f"must be a str, not {type(text).__name__}")
        default = default or cls()
        first, *more = re.split("[:,]", text)
        longest, *factors = more or [None]
        begins = parse_duration(first)
        ends = max(begins, default.longest) if longest is None else parse_duration(longest)
        return cls(begins, ends, _factor(factors, text) if factors else default.factor)

    def delay(self, attempt: int) -> timedelta:
        """Return how long to wait after the given attempt, which is 1 for the first."""
        try:
            ceiling = min(self.longest, self.first * self.factor ** (attempt - 1))
        except OverflowError:
            ceiling = self.longest
        return jittered(ceiling.total_seconds()) * timedelta(seconds=1)


def _factor(given: list[str], text: str) -> float:
    try:
        (factor,) = given
        return float(factor)
    except ValueError as error:
        raise InvalidArgument(
            "backoff",
            text=f"{text[:100]!r} is not a backoff; write its first delay, its longest delay and "
            "the factor of growth, such as 10s:1d:5, or leave out the last ones",
        ) from error


def jittered(ceiling: float) -> float:
    """Shorten a delay at random, but to no less than half, to spread the retries out."""
    return random.uniform(ceiling / 2, ceiling)  # noqa: S311 - no secret


def check_growth(first: timedelta, longest: timedelta, factor: object) -> None:
    """Raise unless delays can grow from `first` to `longest` by `factor`."""
    positive_millis(first, "first")
    positive_millis(longest, "longest")
    if not isinstance(factor, int | float) or isinstance(factor, bool):
        raise InvalidType("factor", f"must be a number, not {type(factor).__name__}")
    if not 1 <= factor <= sys.float_info.max:
        raise InvalidArgument("factor", f"must be at least 1, and finite, not {factor!r}")
