"""Measure the maximum, run traffic below it, and report: `python -m bench.soak --minutes 60`."""

import argparse
import csv
from collections.abc import Sequence
from pathlib import Path

from bench.servers import Servers
from bench.soak.lines import LINES, WHAT_COUNTS, verdict_on
from bench.soak.plot import draw, write_page
from bench.soak.sampling import LOAD, Sample, measure_maximum, sample
from bench.soak.slope import Slope, slope_of

STORES = {"SQLite": "sqlite-full", "PostgreSQL": "postgres"}
SHORTEST = 1
FOLDER = Path(__file__).parents[1] / "report" / "soak"
SETTLED = 0.5  # see WHAT_COUNTS


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 1 if a line changes for the worse."""
    parser = argparse.ArgumentParser(prog="bench.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60, help="how long, for each store")
    parser.add_argument("--store", choices=STORES, action="append", help="run on this store only")
    parser.add_argument("--to", type=Path, default=FOLDER, help="the folder of the results")
    given = parser.parse_args(arguments)
    if given.minutes < SHORTEST:
        parser.error(f"--minutes must be at least {SHORTEST}, or there are too few samples")
    given.to.mkdir(parents=True, exist_ok=True)
    samples: dict[str, list[Sample]] = {}
    with Servers() as servers:
        for store in given.store or STORES:
            samples[store] = soak(servers, store, given.minutes)
            write(samples, given.to / "soak.csv")
    slopes = {
        (store, line): settled_slope(taken, line)
        for store, taken in samples.items()
        for line in LINES
    }
    draw(samples, given.to / "soak")
    text = f"{given.minutes:g} minutes on each store, at {LOAD:.0%} of its maximum. {WHAT_COUNTS}"
    write_page(slopes, text, given.to / "soak")
    print(f"The page is {given.to / 'soak.html'}, and all samples are in {given.to / 'soak.csv'}.")
    return report(slopes)


def soak(servers: Servers, store: str, minutes: float) -> list[Sample]:
    """Measure the maximum on an empty store, then sample traffic below it on another."""
    with servers.empty_store(STORES[store]) as url:
        maximum = measure_maximum(url, seconds=min(60, 20 * minutes))
    print(f"{store}: at most {maximum:,.0f} messages per second; {LOAD:.0%} of that from now on")
    with servers.empty_store(STORES[store]) as url:
        return list(sample(url, LOAD * maximum, minutes * 60))


def settled_slope(taken: Sequence[Sample], line: str) -> Slope:
    """Fit a line to the samples after the beginning."""
    settled = taken[int(len(taken) * SETTLED) :]
    minutes, values = ([each[name] for each in settled] for name in ("minute", line))
    return slope_of(minutes, values, LINES[line].negligible)


def write(samples: dict[str, list[Sample]], path: Path) -> None:
    """Write every sample that there is so far."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, ["store", "minute", *LINES])
        writer.writeheader()
        for store, taken in samples.items():
            writer.writerows({"store": store, **each} for each in taken)


def report(slopes: dict[tuple[str, str], Slope]) -> int:
    """Print what each line does, and return 1 if one changes for the worse."""
    verdicts = {(store, line): verdict_on(line, slope) for (store, line), slope in slopes.items()}
    for (store, line), slope in slopes.items():
        change = f"{slope.per_minute:+.3f} ± {slope.uncertainty:.3f} per minute"
        print(
            f"{store:12} {line:16} mean {slope.mean:12,.2f}   {change:32} {verdicts[store, line]}"
        )
    return int(any(verdict.isupper() for verdict in verdicts.values()))


if __name__ == "__main__":
    raise SystemExit(main())
