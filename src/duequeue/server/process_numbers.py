"""What the process uses, under the names that every Prometheus client gives these numbers."""

import os
import resource
import time
from collections.abc import Iterator
from pathlib import Path

from duequeue.process.shared import pools_in_use
from duequeue.server.exposition import Labels, Sample, counter, gauge

_STARTED_AT = time.time()  # of this module, a moment after the process
_OPEN_FILES = Path("/proc/self/fd")
_MEMORY = Path("/proc/self/statm")


def lines() -> Iterator[str]:
    """Write the numbers that this system knows."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    yield from counter(
        "process_cpu_seconds_total", "CPU time.", _one(used.ru_utime + used.ru_stime)
    )
    yield from gauge("process_start_time_seconds", "When the server started.", _one(_STARTED_AT))
    most_files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield from gauge("process_max_fds", "How many files may be open.", _one(most_files))
    if _OPEN_FILES.exists():  # not on macOS
        files = len(os.listdir(_OPEN_FILES))  # noqa: PTH208 - its entries vanish meanwhile
        yield from gauge("process_open_fds", "How many files are open.", _one(files))
        pages = int(_MEMORY.read_text().split()[1])
        memory = pages * os.sysconf("SC_PAGE_SIZE")
        yield from gauge("process_resident_memory_bytes", "Memory in use.", _one(memory))


def pool_lines() -> Iterator[str]:
    """Write how much the pools of connections are used."""
    pools = pools_in_use()
    yield from gauge(
        "duequeue_pool_size",
        "How many calls a pool of connections serves at a time.",
        ((_of(each.place), each.size) for each in pools),
    )
    yield from gauge(
        "duequeue_pool_used",
        "How many calls have a connection of a pool now.",
        ((_of(each.place), each.used) for each in pools),
    )


def _one(value: float) -> list[Sample]:
    return [({}, value)]


def _of(place: str) -> Labels:
    return {"database": place}
