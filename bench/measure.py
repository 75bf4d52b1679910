"""One measurement, in a process of its own: nothing of one contender is left to the next."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from urllib.parse import urlsplit

from bench.contenders import open_contender
from bench.unavailable import Unavailable
from bench.workload import Outcome
from bench.workloads import WORKLOADS_BY_NAME

# The last thing that a contender's libraries print is not the outcome.
MARK = "outcome: "


@dataclass(frozen=True)
class Order:
    """What to measure, and where."""

    workload: str
    contender: str
    url: str
    size: int


class Failed(Exception):
    """A measurement that ended without an outcome; the last line of what it printed."""


def measure_apart(order: Order, seconds: float) -> Outcome:
    """Measure in a new process, which is ended with all its own after so many seconds."""
    with subprocess.Popen(
        [sys.executable, "-m", "bench.measure"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            out, errors = process.communicate(json.dumps(asdict(order)), timeout=seconds)
        except subprocess.TimeoutExpired:
            raise Failed(f"not done after {seconds:.0f} s") from None
        finally:
            _end_group(process.pid)
    for line in out.splitlines():
        if line.startswith(MARK):
            return Outcome(**json.loads(line.removeprefix(MARK)))
    reason = (errors.strip().splitlines() or ["no outcome"])[-1]
    raise Failed(reason.replace(urlsplit(order.url).password or "\0", "***"))


def _end_group(leader: int) -> None:
    """End whatever a contender has left running in the session of its process."""
    with suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def main() -> None:
    """Measure what the standard input says."""
    order = Order(**json.load(sys.stdin))
    workload = WORKLOADS_BY_NAME[order.workload]
    try:
        contender = open_contender(order.contender, order.url)
    except Unavailable as reason:
        raise SystemExit(str(reason)) from None
    try:
        outcome = workload.measure(contender, order.size)
    finally:
        contender.close()
    print(f"{MARK}{json.dumps(asdict(outcome))}", flush=True)


if __name__ == "__main__":
    main()
