"""A workload: a measurement, its contenders and its sizes."""

from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import quantiles
from typing import Literal, TypeAlias

from bench.contender import Contender

Figures: TypeAlias = dict[str, float]

RATE = "messages/s"


@dataclass(frozen=True)
class Outcome:
    """The figures of one measurement, the most important one first, and its curves over time."""

    figures: Figures
    curves: dict[str, list[float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Workload:
    """A measurement of one contender on an empty store, of a certain size."""

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
    """Return the median and the 99th percentile."""
    cuts = quantiles(milliseconds, n=100)
    return Outcome({"p50 ms": cuts[49], "p99 ms": cuts[98]})
