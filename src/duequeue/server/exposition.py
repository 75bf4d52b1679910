"""The text format of Prometheus: families of samples, with their types and what they mean."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

Labels: TypeAlias = Mapping[str, str]
Sample: TypeAlias = tuple[Labels, float]

BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Histogram:
    """How often values were in which range."""

    def __init__(self) -> None:
        self._counts = [0] * (len(BOUNDS) + 1)
        self._sum = 0.0

    def add(self, value: float) -> None:
        """Count one value."""
        self._counts[bisect_left(BOUNDS, value)] += 1
        self._sum += value

    def lines(self, name: str, labels: Labels) -> Iterator[str]:
        """Write the counts."""
        total = 0
        for bound, count in zip((*map(str, BOUNDS), "+Inf"), self._counts, strict=True):
            total += count
            yield f"{name}_bucket{_shown({**labels, 'le': bound})} {total}"
        yield f"{name}_sum{_shown(labels)} {self._sum:.6f}"
        yield f"{name}_count{_shown(labels)} {total}"


def gauge(name: str, about: str, samples: Iterable[Sample]) -> Iterator[str]:
    """Write values that go up and down."""
    yield from _head(name, "gauge", about)
    yield from _lines(name, samples)


def counter(name: str, about: str, samples: Iterable[Sample]) -> Iterator[str]:
    """Write values that only grow."""
    yield from _head(name, "counter", about)
    yield from _lines(name, samples)


def histogram(name: str, about: str, samples: Iterable[tuple[Labels, Histogram]]) -> Iterator[str]:
    """Write histograms."""
    yield from _head(name, "histogram", about)
    for labels, values in samples:
        yield from values.lines(name, labels)


def _head(name: str, kind: str, about: str) -> Iterator[str]:
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} {kind}"


def _lines(name: str, samples: Iterable[Sample]) -> Iterator[str]:
    for labels, value in samples:
        shown = value if isinstance(value, int) else f"{value:.3f}"
        yield f"{name}{_shown(labels)} {shown}"


def _shown(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items()) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
