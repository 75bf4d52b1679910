"""One measurement in its own process, so that it leaves nothing to the next one."""

import json
import subprocess
import sys

from bench.timers import lifetimes, memory_store

STORE = "memory store"


def measure_apart(subject: str, pattern: str, size: int) -> dict[str, float]:
    """Measure in a new process."""
    command = [sys.executable, "-m", "bench.timers.one", subject, pattern, str(size)]
    finished = subprocess.run(command, capture_output=True, text=True, check=True)
    figures: dict[str, float] = json.loads(finished.stdout)
    return figures


def main(subject: str, pattern: str, size: int) -> None:
    """Measure here."""
    if pattern == STORE:
        print(json.dumps(memory_store.measure(subject, size)))
    else:
        print(json.dumps(lifetimes.measure(subject, pattern, size)))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
