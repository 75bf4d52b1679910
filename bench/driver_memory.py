"""The memory of a Spark driver's Python processes: its own, and those of its sources."""

import os

import psutil

SOURCE = "python_streaming_source_runner"


def driver_megabytes() -> float:
    """Return the resident memory of this process, and of those in which Spark runs our source."""
    driver = psutil.Process(os.getpid())
    sources = sum(map(_size_of_source, driver.children(recursive=True)))
    return float(driver.memory_info().rss + sources) / 1e6


def _size_of_source(process: psutil.Process) -> int:
    try:
        is_source = any(SOURCE in part for part in process.cmdline())
        return int(process.memory_info().rss) if is_source else 0
    except psutil.Error:  # it has just ended
        return 0
