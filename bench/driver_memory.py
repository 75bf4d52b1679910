"""How much memory the Python of a Spark driver has: its own process, and its sources' processes."""

import os

import psutil

SOURCE = "python_streaming_source_runner"


def driver_megabytes() -> float:
    """Return the resident memory of this process, and of those in which Spark runs our source."""
    driver = psutil.Process(os.getpid())
    processes = [driver, *(each for each in driver.children(recursive=True) if _runs_source(each))]
    return float(sum(process.memory_info().rss for process in processes)) / 1e6


def _runs_source(process: psutil.Process) -> bool:
    try:
        return any(SOURCE in part for part in process.cmdline())
    except psutil.Error:  # it has ended meanwhile
        return False
