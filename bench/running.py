"""Run every workload in rounds; each round measures all contenders, in another order."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.contender import takes_part
from bench.contenders import Entry
from bench.measure import Failed, Measurement, measure_apart
from bench.results import Results
from bench.servers import Servers
from bench.unavailable import Unavailable
from bench.workload import Outcome, Workload

USUAL_ROUNDS = 3
BUDGET = 30.0  # seconds for one workload, after which no other round starts


@dataclass(frozen=True)
class Run:
    """The workloads and contenders to measure, and how thoroughly."""

    workloads: Sequence[Workload]
    entries: Sequence[Entry]
    rounds: int | None
    quick: bool
    size: int | None = None

    def into(self, results: Results, servers: Servers) -> None:
        """Measure everything, and print each measurement when it is done."""
        began = time.monotonic()
        for number, workload in enumerate(self.workloads, 1):
            passed = f"{time.monotonic() - began:.0f} s"
            print(f"\n{workload.title} ({number} of {len(self.workloads)}, {passed})", flush=True)
            results.sizes[workload.name] = self._size(workload)
            for entry in self._in_turn(workload):
                # A failed measurement is not repeated, as it would take as long to fail again.
                if not results.failed(workload.name, entry.name):
                    self._measure(workload, entry, results, servers)

    def _in_turn(self, workload: Workload) -> Iterator[Entry]:
        """Yield all contenders once per round; each round starts with another one."""
        entries = [entry for entry in self.entries if _takes_part(entry, workload)]
        began = time.monotonic()
        for number in range(self.rounds or workload.rounds or USUAL_ROUNDS):
            if self.rounds is None and time.monotonic() - began > BUDGET:
                return
            start = number * len(entries) // USUAL_ROUNDS % (len(entries) or 1)
            yield from entries[start:] + entries[:start]

    def _measure(
        self, workload: Workload, entry: Entry, results: Results, servers: Servers
    ) -> None:
        print(f"  {entry.name:<24} ", end="", flush=True)
        try:
            with servers.empty_store(entry.store) as url:
                size = self._size(workload)
                if workload.better == "more":  # a rate, for which a share of the messages is enough
                    size = entry.share(size)
                measurement = Measurement(workload.name, entry.name, url, size)
                outcome = measure_apart(measurement, workload.patience)
        except (Failed, Unavailable) as reason:
            print(reason, flush=True)
            results.fail(workload.name, entry.name, str(reason))
        else:
            print(_shown(outcome), flush=True)
            results.add(workload.name, entry.name, outcome)

    def _size(self, workload: Workload) -> int:
        return self.size or (workload.quick if self.quick else None) or workload.full


def _takes_part(entry: Entry, workload: Workload) -> bool:
    if workload.only and entry.name not in workload.only:
        return False
    if workload.stores and entry.store not in workload.stores:
        return False
    try:
        return takes_part(entry.load(), workload.method)
    except ImportError:
        return False


def _shown(outcome: Outcome) -> str:
    return ", ".join(f"{value:,.2f} {name}" for name, value in outcome.figures.items())
