"""One measurement in its own process, so that a contender leaves nothing to the next one."""

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

# Marks the outcome, because the libraries of a contender may print more lines after it.
MARK = "outcome: "


@dataclass(frozen=True)
class Measurement:
    """A workload and a contender to measure, the store and the size."""

    workload: str
    contender: str
    url: str
    size: int


class Failed(Exception):
    """A measurement that ended without an outcome; the text is the last line of its output."""


def measure_apart(measurement: Measurement, seconds: float) -> Outcome:
    """Measure in a new process, and end all processes that it has started."""
    with subprocess.Popen(
        [sys.executable, "-m", "bench.measure"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            out, errors = process.communicate(json.dumps(asdict(measurement)), timeout=seconds)
        except subprocess.TimeoutExpired:
            raise Failed(f"not finished after {seconds:.0f} s") from None
        finally:
            _end_group(process.pid)
    for line in out.splitlines():
        if line.startswith(MARK):
            return Outcome(**json.loads(line.removeprefix(MARK)))
    reason = (errors.strip().splitlines() or ["no outcome"])[-1]
    raise Failed(reason.replace(urlsplit(measurement.url).password or "\0", "***"))


def _end_group(leader: int) -> None:
    """End all processes that a contender has left running in its session."""
    with suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def main() -> None:
    """Make the measurement that standard input describes."""
    measurement = Measurement(**json.load(sys.stdin))
    workload = WORKLOADS_BY_NAME[measurement.workload]
    try:
        contender = open_contender(measurement.contender, measurement.url)
    except Unavailable as reason:
        raise SystemExit(str(reason)) from None
    try:
        outcome = workload.measure(contender, measurement.size)
    finally:
        contender.close()
    print(f"{MARK}{json.dumps(asdict(outcome))}", flush=True)


if __name__ == "__main__":
    main()
