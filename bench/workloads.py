"""What is measured; each workload returns figures by name for one contender."""

import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from statistics import quantiles

import psycopg

from bench.contenders import contender
from bench.contenders.duequeue_base import QUEUE
from duequeue import Delivery, Message, Queue


@dataclass(frozen=True)
class Scale:
    """How much of everything."""

    messages: int
    pings: int
    scheduled: int
    seconds: int


FULL = Scale(messages=50_000, pings=1_000, scheduled=5_000, seconds=60)
QUICK = Scale(messages=10_000, pings=200, scheduled=1_000, seconds=10)


def throughput(name: str, url: str, scale: Scale) -> dict[str, float]:
    """Messages per second through a handler that does nothing."""
    ours = contender(name)
    ours.load(url, scale.messages)
    return {"messages/s": scale.messages / ours.drain(url, scale.messages)}


def idle_latency(name: str, url: str, scale: Scale) -> dict[str, float]:
    """From before the offer in one process to the handler in another, one message at a time."""
    command = [sys.executable, "-m", "bench.receiver", name, url, str(scale.pings)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as receiver:
        assert receiver.stdout is not None
        receiver.stdout.readline()
        with contender(name).producer(url) as offer:
            for n in range(scale.pings):
                # Not a benchmark of load: each message finds everybody asleep.
                time.sleep(0.01 + random.random() * 0.01)
                offer(f"ping-{n}", time.time_ns())
        ages = json.loads(receiver.stdout.readline())
    return _milliseconds([age / 1e6 for age in ages[len(ages) // 10 :]])


def lateness(_: str, url: str, scale: Scale) -> dict[str, float]:
    """How late messages scheduled for random instants reach a handler."""
    late: list[float] = []
    done = threading.Event()

    def handle(delivery: Delivery[None]) -> None:
        late.append((datetime.now(UTC) - delivery.due_at) / timedelta(milliseconds=1))
        if len(late) == scale.scheduled:
            done.set()

    start = datetime.now(UTC) + timedelta(seconds=2)
    spread = timedelta(seconds=scale.seconds / 3)
    with Queue.open(url, QUEUE, poll_interval=timedelta(seconds=3)) as queue:
        queue.offer_batch(
            Message(f"late-{n}", None, start + random.random() * spread)
            for n in range(scale.scheduled)
        )
        with queue.consume(handle):
            done.wait()
    return _milliseconds(late)


def idle_statements(_: str, url: str, scale: Scale) -> dict[str, float]:
    """How many transactions a consumer with nothing to do causes in a minute."""
    with Queue.open(url, QUEUE) as queue, queue.consume(lambda _: None):
        time.sleep(3)  # let it settle
        before = _transactions(url)
        time.sleep(scale.seconds)
        caused = _transactions(url) - before
    return {"transactions/min": caused * 60 / scale.seconds}


def _transactions(url: str) -> int:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT pg_stat_clear_snapshot()")
        query = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"
        row = connection.execute(query).fetchone()
    assert row is not None
    return int(row[0])


def _milliseconds(values: list[float]) -> dict[str, float]:
    percentiles = quantiles(values, n=100)
    return {"p50 ms": percentiles[49], "p99 ms": percentiles[98], "max ms": max(values)}


@dataclass(frozen=True)
class Workload:
    """A measurement, and who takes part in it."""

    title: str
    measure: Callable[[str, str, Scale], dict[str, float]]
    contenders: tuple[str, ...]


PEERS = ("pgqueuer_10", "pgqueuer_100", "pgqueuer_500")

WORKLOADS = (
    Workload("Consumer with a no-op handler", throughput, ("loop", "threads", "tasks", *PEERS)),
    Workload("Idle, one process to another", idle_latency, ("threads", "tasks", "pgqueuer_10")),
    Workload("Lateness of scheduled messages", lateness, ("threads",)),
    Workload("Cost of an idle consumer", idle_statements, ("threads",)),
)
