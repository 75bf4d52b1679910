"""The results of a run by workload and contender, kept as JSON."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import NamedTuple, Self

from bench.workload import Outcome


class Spread(NamedTuple):
    """The lowest, median and highest value of a figure over the rounds."""

    low: float
    middle: float
    high: float


@dataclass
class Results:
    """The outcomes of every round, and the reasons of failures."""

    about: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    outcomes: dict[str, dict[str, list[Outcome]]] = field(default_factory=dict)
    failures: dict[str, dict[str, str]] = field(default_factory=dict)

    def add(self, workload: str, contender: str, outcome: Outcome) -> None:
        """Keep one outcome."""
        self.outcomes.setdefault(workload, {}).setdefault(contender, []).append(outcome)

    def fail(self, workload: str, contender: str, reason: str) -> None:
        """Keep the reason why there is no outcome."""
        self.failures.setdefault(workload, {})[contender] = reason

    def failed(self, workload: str, contender: str) -> bool:
        """Return whether there is such a reason."""
        return contender in self.failures.get(workload, {})

    def spread(self, workload: str, contender: str, figure: str) -> Spread:
        """Return the median of a figure, the lowest and the highest."""
        values = [outcome.figures[figure] for outcome in self.outcomes[workload][contender]]
        return Spread(min(values), median(values), max(values))

    def figures(self, workload: str) -> list[str]:
        """Return the names of a workload's figures, the most important one first."""
        for outcomes in self.outcomes.get(workload, {}).values():
            return list(outcomes[0].figures)
        return []

    def write(self, path: Path) -> None:
        """Write all results."""
        path.write_text(json.dumps(asdict(self), indent=1) + "\n")

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read results that were written before."""
        kept = json.loads(path.read_text())
        outcomes = {
            workload: {name: [Outcome(**each) for each in rows] for name, rows in of.items()}
            for workload, of in kept.pop("outcomes").items()
        }
        return cls(**kept, outcomes=outcomes)
