"""Measure how much readers hold up producers at a server: `python -m bench.starving`.

One producer offers over HTTP, alone and beside 16 readers of `stats` in turn, so that the rest of
the machine disturbs both alike. Each line has the medians in milliseconds, and their ratio.
"""

import argparse
import multiprocessing
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from datetime import UTC, datetime, timedelta
from multiprocessing.synchronize import Event
from statistics import median
from time import monotonic
from typing import Any, Self

from bench.server_process import ServerProcess
from bench.servers import Servers
from duequeue import Message, Queue, StoreUnavailable

STORES = ("postgres", "mariadb", "sqlite-full")
READERS = 16
TURNS = 8
CHUNK = 10_000


def main() -> None:
    """Measure each store, and print a line for it."""
    parser = argparse.ArgumentParser(prog="bench.starving", description=__doc__)
    parser.add_argument("--messages", type=int, default=500_000, help="how many the queue holds")
    parser.add_argument("--seconds", type=float, default=40.0, help="how long a line takes")
    parser.add_argument("--url", help="a store to use instead of those that we start")
    parser.add_argument("--store", choices=STORES, action="append", help="only this store")
    given = parser.parse_args()
    names = [given.url] if given.url else given.store or STORES
    with Servers() as servers:
        for name in names:
            store = nullcontext(name) if given.url else servers.empty_store(name)
            with store as url:
                measure(name, url, given.messages, given.seconds)


def measure(name: str, url: str, messages: int, seconds: float) -> None:
    """Fill a queue, and let its producer work alone and beside the readers."""
    _fill(url, messages)
    alone: list[float] = []
    beside: list[float] = []
    server = ServerProcess(["-m", "duequeue", "serve", "--url", url])
    address = f"http://127.0.0.1:{server.port}"
    try:
        _offers(address, 1.0)  # the server opens the queue
        reads = 0
        for _ in range(TURNS):
            alone += _offers(address, seconds / TURNS / 2)
            with _Readers(address) as readers:
                beside += _offers(address, seconds / TURNS / 2)
            reads += readers.reads
    finally:
        server.stop()
    one, two = median(alone) * 1000, median(beside) * 1000
    print(f"{name:10} {one:8.2f} ms alone {two:9.2f} ms beside {two / one:8.2f} {reads} reads")


class _Readers:
    """Readers of `stats` in a process of their own, for as long as a block lasts."""

    def __init__(self, address: str) -> None:
        context = multiprocessing.get_context("spawn")
        self._stops, self._begun = context.Event(), context.Event()
        self._reads = context.Value("i", 0)
        arguments = (address, self._begun, self._stops, self._reads)
        self._process = context.Process(target=_read, args=arguments)

    @property
    def reads(self) -> int:
        """How many reads were answered."""
        return int(self._reads.value)

    def __enter__(self) -> Self:
        self._process.start()
        self._begun.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._stops.set()
        self._process.join()


def _read(address: str, begun: Event, stops: Event, reads: Any) -> None:
    def read() -> None:
        with Queue.open(address, "starving") as queue:
            while not stops.is_set():
                with suppress(StoreUnavailable):
                    queue.stats()
                    with reads.get_lock():
                        reads.value += 1
                        if reads.value >= READERS:  # by now, all have opened the queue
                            begun.set()

    with ThreadPoolExecutor(READERS) as pool:
        for reading in [pool.submit(read) for _ in range(READERS)]:
            reading.result()


def _offers(address: str, seconds: float) -> list[float]:
    """Return how long each offer took."""
    took = []
    ends_at = monotonic() + seconds
    with Queue.open(address, "starving") as queue:
        while (began := monotonic()) < ends_at:
            queue.offer("one", {"at": began})
            took.append(monotonic() - began)
    return took


def _fill(url: str, messages: int) -> None:
    due = datetime.now(UTC) + timedelta(days=30)
    with Queue.open(url, "starving") as queue:
        for first in range(0, messages, CHUNK):
            numbers = range(first, min(first + CHUNK, messages))
            queue.offer_batch(
                [
                    Message(f"m{number}", number, due + timedelta(seconds=number))
                    for number in numbers
                ]
            )


if __name__ == "__main__":
    main()
