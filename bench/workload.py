"""What a workload is: a measurement, who takes part, and how much of everything."""

from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import quantiles
from typing import Literal, TypeAlias

from bench.contender import Contender

Figures: TypeAlias = dict[str, float]

RATE = "messages/s"


@dataclass(frozen=True)
class Outcome:
    """What one measurement found: figures, the first of which counts, and curves over time."""

    figures: Figures
    curves: dict[str, list[float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Workload:
    """A measurement of one contender on an empty store; `size` is how much of it."""

    name: str
    title: str
    about: str
    method: str
    measure: Callable[[Contender, int], Outcome]
    full: int
    quick: int | None = None
    better: Literal["more", "less"] = "more"
    rounds: int | None = None
    patience: float = 120  # seconds for one measurement
    only: tuple[str, ...] = ()
    stores: tuple[str, ...] = ()


def rate(messages: int, seconds: float) -> Outcome:
    """Return messages per second."""
    return Outcome({RATE: messages / seconds})


def percentiles(milliseconds: list[float]) -> Outcome:
    """Return what is usual, and what is rare."""
    cuts = quantiles(milliseconds, n=100)
    return Outcome({"p50 ms": cuts[49], "p99 ms": cuts[98]})
