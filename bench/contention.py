"""Measure batches that reach for the same rows on PostgreSQL: `python -m bench.contention`.

Two threads work on 300 keys, in batches of 100 in random order. Each line counts the batches that
both finished, also as a ratio to the first line, and the deadlocks that the server saw. The lines
take turns, so that the rest of the machine disturbs all of them alike.
"""

import argparse
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial
from itertools import count
from random import Random
from time import monotonic, sleep
from typing import Any, TypeAlias

import psycopg

from bench.servers import Servers
from duequeue import Message, Queue

KEYS = [f"order-{number:03}" for number in range(300)]
BATCH = 100
TURNS = 4
DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"

# One thread calls this again and again, with its queue, its random numbers and its lap.
Batch: TypeAlias = Callable[[Queue[Any], Random, int], object]


def offer_once(queue: Queue[Any], random: Random, lap: int) -> None:
    """Offer each key once."""
    keys = enumerate(random.sample(KEYS, BATCH))
    queue.offer_batch([Message(key, [lap, number]) for number, key in keys])


def offer_twice(queue: Queue[Any], random: Random, lap: int) -> None:
    """Offer one key for a second time."""
    keys = random.sample(KEYS, BATCH - 1)
    place = random.randrange(BATCH)
    keys.insert(place, random.choice(keys))
    queue.offer_batch([Message(key, [lap, number]) for number, key in enumerate(keys)])


def offer_mixed(queue: Queue[Any], random: Random, lap: int) -> None:
    """Let every second message replace what is stored."""
    keys = enumerate(random.sample(KEYS, BATCH))
    queue.offer_batch(
        [Message(key, [lap, number], replace=number % 2 == 0) for number, key in keys]
    )


def poll_and_ack(queue: Queue[Any], random: Random, lap: int) -> None:  # noqa: ARG001 - a Batch
    """Ack what is due, in random order."""
    held = queue.try_poll_many(BATCH)
    random.shuffle(held)
    queue.ack_many(held)


LINES: Mapping[str, tuple[Batch, Batch]] = {
    "one statement a batch": (offer_once, offer_once),
    "a key twice in a batch": (offer_twice, offer_twice),
    "mixed `replace`": (offer_mixed, offer_mixed),
    "beside `ack_many`": (offer_once, poll_and_ack),
}


def main() -> None:
    """Measure each line, and print it."""
    parser = argparse.ArgumentParser(prog="bench.contention", description=__doc__)
    parser.add_argument("--seconds", type=float, default=8.0, help="how long a line takes")
    parser.add_argument("--url", help="a PostgreSQL database to use instead of a server of our own")
    given = parser.parse_args()
    with Servers() as servers:
        store = servers.empty_store("postgres") if given.url is None else nullcontext(given.url)
        with store as url:
            found: dict[str, list[tuple[int, int]]] = {name: [] for name in LINES}
            for _ in range(TURNS):
                for name, batches in LINES.items():
                    found[name].append(measure(url, batches, given.seconds / TURNS))
    totals = {
        name: [sum(each) for each in zip(*turns, strict=True)] for name, turns in found.items()
    }
    first, _ = next(iter(totals.values()))
    for name, (done, deadlocks) in totals.items():
        print(f"{name:24} {done:6} {done / first:5.2f} {deadlocks:4} deadlocks")


def measure(url: str, batches: tuple[Batch, Batch], seconds: float) -> tuple[int, int]:
    """Return how many batches both threads finished, and how many deadlocks there were."""
    with Queue.open(url, "contention") as queue, ThreadPoolExecutor(2) as pool:
        queue.drop_all("contention")
        before = _deadlocks(url)
        ends_at = monotonic() + seconds
        threads = [
            pool.submit(_repeat, partial(batch, queue, Random(seed)), ends_at)
            for seed, batch in enumerate(batches)
        ]
        done = sum(thread.result() for thread in threads)
    return done, _deadlocks(url) - before


def _repeat(batch: Callable[[int], object], ends_at: float) -> int:
    for lap in count():
        if monotonic() >= ends_at:
            return lap
        batch(lap)
    raise AssertionError


def _deadlocks(url: str) -> int:
    sleep(0.3)  # a server counts the deadlocks of a connection when the connection has ended
    with psycopg.connect(url) as connection:
        row = connection.execute(DEADLOCKS).fetchone()
    return 0 if row is None else int(row[0])


if __name__ == "__main__":
    main()
