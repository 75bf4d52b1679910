"""The figures of all rounds, and their medians."""

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple


class Point(NamedTuple):
    """What was measured."""

    pattern: str
    figure: str
    subject: str
    size: int


class Results:
    """Every figure of every round."""

    def __init__(self) -> None:
        self._figures: defaultdict[Point, list[float]] = defaultdict(list)

    def add(self, subject: str, pattern: str, size: int, figures: dict[str, float]) -> None:
        """Keep the figures of one measurement."""
        for figure, value in figures.items():
            self._figures[Point(pattern, figure, subject, size)].append(value)

    def median(self, pattern: str, figure: str, subject: str, size: int) -> float | None:
        """Return the median of the rounds, if there was one."""
        found = self._figures.get(Point(pattern, figure, subject, size))
        return median(found) if found else None

    def curve(self, pattern: str, figure: str, subject: str) -> tuple[list[int], list[float]]:
        """Return the sizes that were measured, and the medians."""
        wanted = (pattern, figure, subject)
        found = sorted((p.size, median(v)) for p, v in self._figures.items() if p[:3] == wanted)
        return [size for size, _ in found], [value for _, value in found]

    def rounds(self) -> int:
        """Return how often each point was measured, at the least."""
        return min(map(len, self._figures.values()), default=0)

    def write(self, path: Path) -> None:
        """Write everything as JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(list(self._rows())))

    @classmethod
    def read(cls, path: Path) -> "Results":
        """Read what `write` wrote."""
        results = cls()
        for pattern, figure, subject, size, values in json.loads(path.read_text()):
            results._figures[Point(pattern, figure, subject, size)] = values
        return results

    def _rows(self) -> Iterator[tuple[str, str, str, int, list[float]]]:
        for point, values in self._figures.items():
            yield (*point, values)
