"""Watch a queue deliver thousands of reminders, each at its own instant.

The queue is an SQLite file with one producer and a few consumers in threads. Then a server takes
one message over HTTP. Finally, Spark archives the history of the reminders and reports on it. See
`python examples/demo.py --help`.
"""

import argparse
import json
import random
import shutil
import subprocess
import sys
import threading
import time
import urllib.request
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import quantiles
from typing import Any

from duequeue import Delivery, Message, Queue
from duequeue.pipeline import archive, report
from duequeue.spark import local_session

BAR = 40
OUTPUT = Path("build", "demo")


@dataclass
class Tally:
    """The deliveries of all consumers so far."""

    expected: int
    lateness: list[float] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    by_consumer: dict[str, int] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    done: threading.Event = field(default_factory=threading.Event)

    def note(self, consumer: str, deliveries: list[Delivery[str]]) -> None:
        """Count deliveries, and how late each one was, in milliseconds."""
        with self.lock:
            self.lateness += [
                (d.delivered_at - d.due_at) / timedelta(milliseconds=1) for d in deliveries
            ]
            self.keys.update(delivery.key for delivery in deliveries)
            self.by_consumer[consumer] = self.by_consumer.get(consumer, 0) + len(deliveries)
            if len(self.keys) == self.expected:
                self.done.set()

    def line(self) -> str:
        """Return the progress as a line of text."""
        with self.lock:
            count, late = len(self.lateness), self.lateness[-500:] or [0.0]
        filled = BAR * count // self.expected
        bar = "█" * filled + "·" * (BAR - filled)
        average = sum(late) / len(late)
        return f"{bar} {count:>6}/{self.expected} delivered, the last ones {average:4.1f} ms late"


def offer(queue: Queue[str], messages: int, within: timedelta) -> None:
    """Schedule all reminders at random instants, starting in one second."""
    start = datetime.now(UTC) + timedelta(seconds=1)
    began = time.perf_counter()
    queue.offer_batch(
        Message(f"reminder-{n}", f"Hello, customer {n}", start + random.random() * within)
        for n in range(messages)
    )
    took = time.perf_counter() - began
    print(
        f"Offered {messages:,} reminders for the next {within.seconds + 1} s. It took {took:.2f} s."
    )


def consume(queue: Queue[str], consumer: str, tally: Tally) -> None:
    """Poll due messages, and acknowledge them."""
    while not tally.done.is_set():
        deliveries = queue.poll_many(100, timeout=timedelta(milliseconds=500))
        if deliveries:
            queue.ack_many(deliveries)
            tally.note(consumer, deliveries)


def show_progress(tally: Tally) -> None:
    """Print a line every second until everything is delivered."""
    while not tally.done.wait(1):
        print(tally.line(), flush=True)
    print(tally.line())


def summarize(queue: Queue[str], tally: Tally) -> None:
    """Print a summary, and check that nothing is missing."""
    percentiles = quantiles(tally.lateness, n=100)
    p50, p99 = percentiles[49], percentiles[98]
    shares = ", ".join(f"{name} {count}" for name, count in sorted(tally.by_consumer.items()))
    twice = len(tally.lateness) - len(tally.keys)
    print(f"\nDelivered   {len(tally.keys):,} messages, {twice} of them twice")
    print(f"By          {shares}")
    print(f"Lateness    p50 {p50:.1f} ms, p99 {p99:.1f} ms, max {max(tally.lateness):.1f} ms")
    print(f"Left over   {queue.stats().total} messages")
    assert len(tally.lateness) == tally.expected
    assert queue.stats().total == 0


def schedule_next_day(url: str) -> None:
    """Schedule newsletters for the next day, so that the report has a forecast."""
    now = datetime.now(UTC)
    with Queue.open(url, "newsletters", codec=str) as queue:
        queue.offer_batch(
            Message(f"letter-{n}", "The news", now + timedelta(hours=random.triangular(1, 24)))
            for n in range(2000)
        )
        print(
            f"Scheduled   {queue.stats().future:,} newsletters for the next day, for the forecast"
        )


def serve_for_a_moment(url: str) -> None:
    """Send a message through the HTTP server on the same file, as a program in any language can."""
    options = ("--dev", "--url", url, "--port", "0")
    command = [sys.executable, "-m", "duequeue", "serve", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            send_one_message(server.stdout.readline().split()[-1])
        finally:
            server.terminate()


def send_one_message(address: str) -> None:
    """Offer, poll and ack a message over HTTP."""
    print(f"\nNow a server answers at {address}.")
    path = f"{address}/v1/queues/over-http"
    offered = request("PUT", f"{path}/messages/order-7?delay=1s", b'{"total": 40}')
    print(f"Offered     order-7 over HTTP, due in a second: {offered['outcome']}")
    (found,) = request("POST", f"{path}:poll", b'{"wait": "10s"}')["deliveries"]
    late = datetime.now(UTC) - datetime.fromisoformat(found["due_at"])
    print(
        f"Long poll   answered with {found['key']} {late / timedelta(milliseconds=1):.1f} ms "
        f"after it was due: {found['payload']}"
    )
    ack = json.dumps({"ack": [found["token"]]}).encode()
    settled = request("POST", f"{path}:settle", ack)["settled"]
    print(f"Acked       {settled[found['token']]}")


def request(method: str, url: str, body: bytes) -> Any:
    """Send a request, and return the JSON of the answer."""
    asked = urllib.request.Request(url, body, method=method)  # noqa: S310 - our own server
    with urllib.request.urlopen(asked, timeout=30) as answer:  # noqa: S310
        return json.load(answer)


def look_back(url: str) -> None:
    """Archive the history of the messages, and report on it."""
    print("\nNow Spark archives the history and writes a report. It takes a while to start.")
    spark = local_session("demo")
    done = archive(spark, url=url, folder=OUTPUT / "archive", include_today=True)
    print(f"Archived    {done.rows:,} rows as Parquet in {done.folder}")
    found = report(
        spark,
        folder=OUTPUT,
        archive=OUTPUT / "archive",
        url=url,
    )
    spark.stop()
    print(f"Report      {Path(found.page).absolute()}")
    assert found.settled == done.rows


def main() -> None:
    """Run the demo."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=5000, help="how many reminders to offer")
    parser.add_argument(
        "--seconds", type=float, default=10, help="the time over which the due times are spread"
    )
    parser.add_argument("--consumers", type=int, default=3, help="how many threads consume")
    given = parser.parse_args()
    shutil.rmtree(OUTPUT, ignore_errors=True)
    OUTPUT.mkdir(parents=True)
    url = f"sqlite:///{OUTPUT.absolute() / 'demo.db'}"
    with Queue.open(url, "reminders", codec=str, history=True) as queue:
        tally = Tally(given.messages)
        offer(queue, given.messages, timedelta(seconds=given.seconds))
        consumers = [
            threading.Thread(target=consume, args=(queue, f"consumer-{n}", tally))
            for n in range(1, given.consumers + 1)
        ]
        for thread in consumers:
            thread.start()
        show_progress(tally)
        for thread in consumers:
            thread.join()
        summarize(queue, tally)
    serve_for_a_moment(url)
    schedule_next_day(url)
    look_back(url)


if __name__ == "__main__":
    main()
