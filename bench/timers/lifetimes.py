"""What it costs to add items, to cancel some of them, and to let the others expire."""

import gc
import os
import random
from collections.abc import Callable
from pathlib import Path
from time import process_time_ns

from bench.timers.subjects import SUBJECTS

NOW = 1_800_000_000_000
HOUR, DAY = 3_600_000, 86_400_000
LATER_THAN_ALL = NOW + 400 * DAY
AT_LEAST = 50_000  # small timers are filled again and again until there were this many items
LEAST_FOR_MEMORY = 50_000  # below, the pages of a process are coarser than the items
FEW = 5  # sched searches its whole queue for what it cancels

Dice = random.Random

PATTERNS: dict[str, Callable[[Dice], int]] = {
    "uniform": lambda dice: NOW + dice.randrange(HOUR),
    "bursty": lambda dice: NOW + dice.randrange(100) * (HOUR // 100),
    "far": lambda dice: NOW + dice.randrange(30 * DAY, 365 * DAY),
}


def measure(subject: str, pattern: str, size: int) -> dict[str, float]:
    """Return nanoseconds of processor time and bytes, for each item."""
    if subject == "SimpleWheel" and pattern == "far":
        return {}  # it refuses them
    dice = random.Random(size)
    instants = [PATTERNS[pattern](dice) for _ in range(size)]
    cancelled = dice.sample(range(size), size // 2)
    if subject == "sched":
        cancelled = cancelled[:FEW]
    repeats = max(1, AT_LEAST // size)
    spent = {"insert": 0, "cancel": 0, "expire": 0, "memory": 0}
    for _ in range(repeats):
        timer = SUBJECTS[subject]()
        gc.collect()
        before, began = resident(), process_time_ns()
        handles = timer.fill(instants)
        filled, after = process_time_ns(), resident()
        gone = [handles[at] for at in cancelled]
        begins_to_cancel = process_time_ns()
        timer.cancel(gone)
        ended = process_time_ns()
        spent["insert"] += filled - began
        spent["memory"] += after - before
        spent["cancel"] += ended - begins_to_cancel
        if hasattr(timer, "expire"):
            begins_to_expire = process_time_ns()
            timer.expire(LATER_THAN_ALL)
            spent["expire"] += process_time_ns() - begins_to_expire
    left = size - len(cancelled)
    figures = {
        "insert": spent["insert"] / repeats / size,
        "cancel": spent["cancel"] / repeats / len(cancelled),
        "expire": spent["expire"] / repeats / left,
        "memory": spent["memory"] / size if size >= LEAST_FOR_MEMORY and repeats == 1 else 0.0,
    }
    return {name: figure for name, figure in figures.items() if figure}


def resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
