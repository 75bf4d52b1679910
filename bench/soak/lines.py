"""The lines that a soak draws, how much each may change, and which changes are harmless."""

from typing import NamedTuple

from bench.soak.slope import Slope

WHAT_COUNTS = (
    "Only the second half of each run is judged, because caches and tables fill up in the first. "
    "A line is flat if its slope is within the uncertainty or its change is too small to matter. "
    "Of the others, only growth counts, and of the messages handled only a fall."
)


class Line(NamedTuple):
    """A title with its unit, a change that is negligible, and the direction that is harmless."""

    title: str
    negligible: float
    harmless: str = "falls"


LINES = {
    "memory MB": Line("Memory of the process, MB", 1),
    "threads": Line("Threads", 2),
    "files": Line("Open files", 2),
    "table MB": Line("Table, or file of SQLite, MB", 0.5),
    "index or log MB": Line("Indexes, or log of SQLite, MB", 0.5),
    "p50 ms": Line("Lateness, median, ms", 1),
    "p99 ms": Line("Lateness, 99th percentile, ms", 10),
    "in queue": Line("Messages in the queue", 20),
    "handled": Line("Messages handled per second", 5, harmless="rises"),
}


def verdict_on(line: str, slope: Slope) -> str:
    """Say in a word what a line does; a change that counts is in capitals."""
    if slope.is_flat:
        return "flat"
    direction = "rises" if slope.per_minute > 0 else "falls"
    return direction if direction == LINES[line].harmless else direction.upper()
