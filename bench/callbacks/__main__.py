"""Measure callbacks in rounds, in which the subjects take turns, and print the figures."""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.callbacks.receiver import FACTS
from bench.callbacks.subjects import WARM_UP
from bench.servers import Servers

STORES = ("memory", "sqlite", "postgres")
PER_SECOND = 500
ENDPOINTS, AT_A_TIME, PAUSE_SECONDS = 2_000, 1_000, 5.0


class Receiver:
    """The receiver's process, seen from here."""

    def __init__(self, url: str) -> None:
        self.url = url

    def facts(self) -> dict[str, Any]:
        """Return what came since the last look."""
        with urllib.request.urlopen(self.url + FACTS) as answer:  # noqa: S310 - our own process
            facts: dict[str, Any] = json.load(answer)
            return facts


@contextmanager
def receiving(pause: float = 0.0) -> Iterator[Receiver]:
    """Run a receiver."""
    command = [sys.executable, "-m", "bench.callbacks.receiver", str(pause)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield Receiver(f"http://127.0.0.1:{process.stdout.readline().strip()}")
        finally:
            process.kill()


def measured(subject: str, *arguments: object) -> dict[str, float]:
    """Run a subject in a process of its own."""
    given = json.dumps([subject, *arguments])
    command = [sys.executable, "-m", "bench.callbacks.subjects", given]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    result: dict[str, float] = json.loads(done.stdout)
    return result


class Stores:
    """Where the queues of each store are."""

    def __init__(self, servers: Servers, folder: Path) -> None:
        self._servers = servers
        self._folder = folder

    def url(self, store: str) -> str:
        """Return the URL of a store."""
        match store:
            case "memory":
                return "memory:callbacks"
            case "sqlite":
                return f"sqlite:///{self._folder / 'callbacks.db'}"
            case _:
                return self._servers.postgres.admin_url


def throughput(stores: Stores, rounds: int, calls: int) -> None:
    """Compare signed callbacks with bare POSTs."""
    figures: dict[str, list[tuple[float, float]]] = {"bare": []}
    with receiving() as receiver:
        for _ in range(rounds):
            taken = measured("bare", receiver.url, calls)
            figures["bare"].append((calls / taken["seconds"], calls / taken["cpu"]))
            for store in STORES:
                taken = measured("push", receiver.url, calls, stores.url(store))
                found = (calls / taken["seconds"], calls / taken["cpu"])
                figures.setdefault(store, []).append(found)
        came = receiver.facts()["calls"]
        sent = rounds * (WARM_UP + calls) * (1 + len(STORES))
        assert came == sent, f"{came} calls came instead of {sent}"
    print(f"\n{calls} callbacks, {rounds} rounds, medians")
    print("| | per second | per second of CPU | share of the bare client's speed | share per CPU |")
    print("|---|---|---|---|---|")
    for subject, values in figures.items():
        pairs = list(zip(values, figures["bare"], strict=True))
        shares = [statistics.median(ours[n] / bare[n] for ours, bare in pairs) for n in (0, 1)]
        speed, per_cpu = (statistics.median(value[n] for value in values) for n in (0, 1))
        print(f"| {subject} | {speed:,.0f} | {per_cpu:,.0f} | {shares[0]:.2f} | {shares[1]:.2f} |")


def how_late(stores: Stores, seconds: int) -> None:
    """Measure how late callbacks are at a moderate rate."""
    print(f"\n{PER_SECOND} callbacks per second for {seconds} s")
    print("| | p50 | p99 | latest | CPU of the push process |")
    print("|---|---|---|---|---|")
    for store in STORES:
        with receiving() as receiver:
            calls = PER_SECOND * seconds
            taken = measured("lateness", receiver.url, calls, stores.url(store), PER_SECOND)
            late = sorted(receiver.facts()["late"])
        assert len(late) == calls, f"{len(late)} calls came instead of {calls}"
        p50, p99 = late[calls // 2], late[calls * 99 // 100]
        share = taken["cpu"] / seconds
        print(f"| {store} | {p50:.1f} ms | {p99:.1f} ms | {late[-1]:.1f} ms | {share:.0%} |")


def many_slow_endpoints(stores: Stores, calls: int) -> None:
    """Measure how close the throughput to slow endpoints comes to the possible maximum."""
    possible = AT_A_TIME / PAUSE_SECONDS
    print(f"\n{ENDPOINTS} endpoints that take {PAUSE_SECONDS:.0f} s, {AT_A_TIME} calls at a time")
    print("| | per second | of the possible | CPU of the push process |")
    print("|---|---|---|---|")
    for store in STORES[:2]:
        with receiving(PAUSE_SECONDS) as receiver:
            taken = measured("slow", receiver.url, calls, stores.url(store), ENDPOINTS, AT_A_TIME)
            facts = receiver.facts()
        assert facts["calls"] == calls
        # The last answer leaves one pause after the last call came.
        seconds = facts["last_at"] + PAUSE_SECONDS - facts["first_at"]
        speed = calls / seconds
        share = taken["cpu"] / seconds
        print(f"| {store} | {speed:.0f} | {speed / possible:.0%} | {share:.0%} |")


def main() -> None:
    """Parse the arguments."""
    parser = argparse.ArgumentParser(prog="python -m bench.callbacks")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=6_000, help="callbacks in each round")
    parser.add_argument("--seconds", type=int, default=10, help="how long lateness is measured")
    parser.add_argument("--slow-calls", type=int, default=4_000)
    parser.add_argument("--only", choices=["throughput", "lateness", "slow"])
    arguments = parser.parse_args()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with Servers() as servers, tempfile.TemporaryDirectory(prefix="duequeue-bench-") as name:
        stores = Stores(servers, Path(name))
        if arguments.only in {None, "throughput"}:
            throughput(stores, arguments.rounds, arguments.calls)
        if arguments.only in {None, "lateness"}:
            how_late(stores, arguments.seconds)
        if arguments.only in {None, "slow"}:
            many_slow_endpoints(stores, arguments.slow_calls)


if __name__ == "__main__":
    main()
