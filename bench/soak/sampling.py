"""Run the traffic in a process of its own, and sample that process and its store."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import monotonic
from typing import TypeAlias

import psutil
import psycopg

MEGABYTE = 1024 * 1024
LOAD = 0.7
WARM_UP = 3  # reports of the traffic

Sample: TypeAlias = dict[str, float]

SIZES = """
    SELECT pg_table_size(oid), pg_indexes_size(oid) FROM pg_class
    WHERE oid = CAST('duequeue_message' AS regclass)
"""


def measure_maximum(url: str, seconds: float) -> float:
    """Return how many messages per second come through at most."""
    with _traffic(url, 0, seconds) as (reports, _):
        rates = [report["handled"] for report in reports]
    return median(rates[WARM_UP:])


def sample(url: str, rate: float, seconds: float) -> Iterator[Sample]:
    """Yield a sample whenever the traffic reports."""
    began = monotonic()
    with _traffic(url, rate, seconds) as (reports, process):
        for report in reports:
            yield {
                "minute": (monotonic() - began) / 60,
                "memory MB": process.memory_info().rss / MEGABYTE,
                "threads": process.num_threads(),
                "files": process.num_fds(),
                **sizes(url),
                **report,
            }


@contextmanager
def _traffic(
    url: str, rate: float, seconds: float
) -> Iterator[tuple[Iterator[Sample], psutil.Process]]:
    command = [sys.executable, "-m", "bench.soak.traffic", url, str(rate), str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        try:
            yield map(json.loads, running.stdout), psutil.Process(running.pid)
        finally:
            running.stdout.close()
            if running.wait() not in {0, -13}:
                raise RuntimeError(f"the traffic on {url.partition(':')[0]} failed")


def sizes(url: str) -> Sample:
    """Return the sizes of the table and its indexes, or of the file and its log."""
    if url.startswith("sqlite"):
        path = url.partition("?")[0].removeprefix("sqlite:///")
        return {"table MB": _file_size(path), "index or log MB": _file_size(f"{path}-wal")}
    with psycopg.connect(url) as connection:
        row = connection.execute(SIZES).fetchone()
        assert row is not None
        return {"table MB": row[0] / MEGABYTE, "index or log MB": row[1] / MEGABYTE}


def _file_size(path: str) -> float:
    return Path(path).stat().st_size / MEGABYTE if Path(path).exists() else 0.0
