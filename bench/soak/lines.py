"""The lines that a soak draws, and how much each may change before it matters."""

from typing import NamedTuple


class Line(NamedTuple):
    """A title with its unit, and a change during the whole run that is negligible."""

    title: str
    negligible: float


LINES = {
    "memory MB": Line("Memory of the process, MB", 1),
    "threads": Line("Threads", 2),
    "files": Line("Open files", 2),
    "table MB": Line("Table, or file of SQLite, MB", 0.5),
    "index or log MB": Line("Indexes, or log of SQLite, MB", 0.5),
    "p50 ms": Line("Lateness, median, ms", 1),
    "p99 ms": Line("Lateness, 99th percentile, ms", 10),
    "in queue": Line("Messages in the queue", 20),
    "handled": Line("Messages handled per second", 5),
}
