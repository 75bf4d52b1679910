"""The time of a stage, and the peak memory of each kind of process during it."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

import psutil

LOOK_SECONDS = 0.5


class Meter:
    """Adds up the stages of a day."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.memory: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a block, and look at the memory now and then."""
        over = threading.Event()
        looker = threading.Thread(target=self._look_until, args=(over,), daemon=True)
        looker.start()
        began = perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = perf_counter() - began
            over.set()
            looker.join()

    def _look_until(self, over: threading.Event) -> None:
        while True:
            for kind, size in megabytes_by_kind().items():
                self.memory[kind] = max(self.memory.get(kind, 0), size)
            if over.wait(LOOK_SECONDS):
                return


def megabytes_by_kind() -> dict[str, float]:
    """Return the memory of this process, of its Java, and of Spark's Python processes.

    Memory that several processes share is counted once.
    """
    driver = psutil.Process(os.getpid())
    sizes = {"driver": driver.memory_full_info().pss / 1e6}
    for process in driver.children(recursive=True):
        try:
            kind = "Java" if process.name() == "java" else "workers"
            size = process.memory_full_info().pss / 1e6
        except psutil.Error:  # it has just ended
            continue
        sizes[kind] = sizes.get(kind, 0) + size
    return sizes
