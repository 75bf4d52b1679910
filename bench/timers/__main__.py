"""Measure in rounds, in which all subjects take turns; then draw, and publish if asked to."""

import argparse
from random import Random

from bench.publish import DOCS, report_folder
from bench.timers.lifetimes import PATTERNS
from bench.timers.one import STORE, measure_apart
from bench.timers.plot import draw
from bench.timers.results import Results
from bench.timers.subjects import SUBJECTS
from bench.timers.tables import tables

SIZES = (1_000, 10_000, 100_000, 1_000_000)
STORE_TIMERS = ("heap", "simple", "sorted", "hashed", "hierarchical")
KEPT = report_folder("timers") / "results.json"


def measure(rounds: int, sizes: tuple[int, ...], results: Results) -> None:
    """Measure everything, and write the results again and again."""
    points = [(name, pattern, size) for name in SUBJECTS for pattern in PATTERNS for size in sizes]
    points += [(timer, STORE, size) for timer in STORE_TIMERS for size in sizes]
    for number in range(rounds):
        Random(number).shuffle(points)
        for subject, pattern, size in points:
            results.add(subject, pattern, size, measure_apart(subject, pattern, size))
            results.write(KEPT)
        print(f"round {number + 1} of {rounds} is done", flush=True)


def publish() -> None:
    """Draw the last results into the documentation, and print its tables."""
    results = Results.read(KEPT)
    draw(results, KEPT.parent, DOCS / "img")
    print(tables(results, SIZES))


def main() -> None:
    """Parse the arguments."""
    parser = argparse.ArgumentParser(prog="python -m bench.timers")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="leave larger sizes out")
    parser.add_argument("--smallest", type=int, default=SIZES[0], help="leave smaller sizes out")
    parser.add_argument("--add", action="store_true", help="keep the rounds of earlier runs")
    parser.add_argument("--publish", action="store_true", help="draw the last results")
    arguments = parser.parse_args()
    if not arguments.publish:
        sizes = tuple(s for s in SIZES if arguments.smallest <= s <= arguments.largest)
        measure(arguments.rounds, sizes, Results.read(KEPT) if arguments.add else Results())
    publish()


if __name__ == "__main__":
    main()
