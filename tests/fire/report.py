"""What a long run says at its end: for each store the rounds, calls, keys, faults, violations."""

from collections import Counter
from dataclasses import dataclass, field

from tests.fire.rounds import Outcome

COLUMNS = ("store", "rounds", "calls", "unknown", "keys", "undecided", "violations", "faults")


@dataclass
class Tally:
    """The sums of one store."""

    rounds: int = 0
    calls: int = 0
    unknown: int = 0
    keys: int = 0
    undecided: int = 0
    violations: int = 0
    faults: Counter[str] = field(default_factory=Counter)

    def add(self, outcome: Outcome) -> None:
        verdict = outcome.verdict
        self.rounds += 1
        self.calls += verdict.calls
        self.unknown += verdict.unknown
        self.keys += verdict.keys
        self.undecided += verdict.undecided
        self.violations += len(verdict.violations)
        self.faults += outcome.faults


def table(tallies: dict[str, Tally]) -> str:
    """Return the sums as a Markdown table."""
    rows = [COLUMNS, tuple("---" for _ in COLUMNS)]
    for store, tally in tallies.items():
        faults = ", ".join(f"{count} {name}" for name, count in sorted(tally.faults.items()))
        numbers = (tally.rounds, tally.calls, tally.unknown, tally.keys)
        rest = (tally.undecided, tally.violations)
        rows.append((store, *(f"{each:,}" for each in (*numbers, *rest)), faults))
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)
