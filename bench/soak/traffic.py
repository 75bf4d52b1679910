"""One process that does everything with one queue: `python -m bench.soak.traffic URL RATE SECONDS`.

RATE is how many messages it offers per second, and 0 means as many as it can consume. Every few
seconds it prints a line of JSON about what it did.
"""

import asyncio
import json
import sys
import threading
import time
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from itertools import count
from random import Random
from typing import Any, Protocol

from bench.soak.lateness import Lateness
from duequeue import (
    AsyncQueue,
    Backoff,
    Bury,
    Delivery,
    Message,
    OfferOutcome,
    Queue,
    Retry,
    StoreUnavailable,
)

INTERVAL = 3.0
SECOND = timedelta(seconds=1)
KEEP_BURIED = 20 * SECOND
# Unless a rate is given, the producer waits while more messages than this are on their way.
MOST_ON_THEIR_WAY = 2_000
PAYLOAD = {"total": 40, "lines": ["tea", "cup"], "note": "x" * 100}
BACKOFF = Backoff(first=0.1 * SECOND, longest=SECOND)


class Delivered(Protocol):
    """What the handlers of both faces look at."""

    @property
    def key(self) -> str: ...
    @property
    def attempt(self) -> int: ...
    @property
    def due_at(self) -> Any: ...
    @property
    def delivered_at(self) -> Any: ...


class Traffic:
    """Producers, consumers on threads and on tasks, a cron, and an operator who clears up."""

    def __init__(self, url: str, rate: float) -> None:
        self._url = url
        self._rate = rate
        self._ends = threading.Event()
        self._lateness = Lateness()
        self._offered = 0
        self._gone = 0
        self._in_queue = 0
        self._counting = threading.Lock()

    def run(self, seconds: float) -> None:
        """Keep everything going, and report on it."""
        with ExitStack() as open_queues:
            queue = open_queues.enter_context(Queue.open(self._url, "soak"))
            queue.cron.install_periodic_tick("beat", SECOND, {"tick": True})
            queue.consume(self._handle, concurrency=4, max_attempts=3, backoff=BACKOFF)
            parts = [self._produce, self._poll, self._clear_up]
            threads = [threading.Thread(target=part, args=[queue]) for part in parts]
            threads.append(threading.Thread(target=lambda: asyncio.run(self._consume())))
            for thread in threads:
                thread.start()
            self._report(seconds)
            self._ends.set()
            for thread in threads:
                thread.join()

    def _report(self, seconds: float) -> None:
        began = time.monotonic()
        for number in range(1, int(seconds / INTERVAL) + 1):
            time.sleep(max(began + number * INTERVAL - time.monotonic(), 0))
            handled, usual, rare = self._lateness.take()
            line = {"handled": handled / INTERVAL, "p50 ms": usual, "p99 ms": rare}
            print(json.dumps({**line, "in queue": self._in_queue}), flush=True)

    def _produce(self, queue: Queue[Any]) -> None:
        """Offer at the given rate; of ten offers one is a batch, two are updated, one dropped."""
        random, began = Random(1), time.monotonic()
        for number in count():
            if self._ends.is_set():
                return
            self._pause(began)
            key, due = f"order-{number}", random.random() * 2 * SECOND
            match number % 10:
                case 0:
                    self._offer(
                        queue, [Message(f"{key}-{part}", PAYLOAD, due) for part in range(9)]
                    )
                case 1 | 2:
                    self._offer(queue, [Message(key, PAYLOAD, due)])
                    self._offer(queue, [Message(key, {"changed": True}, due + SECOND)])
                case 3:
                    self._offer(queue, [Message(key, PAYLOAD, due)])
                    self._count(gone=queue.drop(key))
                case _:
                    queue.offer(key, PAYLOAD, due, headers={"trace": key})
                    self._count(offered=1)

    def _offer(self, queue: Queue[Any], messages: list[Message[Any]]) -> None:
        self._count(offered=queue.offer_batch(messages).count(OfferOutcome.CREATED))

    def _pause(self, began: float) -> None:
        """Wait for the time of the next offer, or until enough messages are gone."""
        while not self._ends.is_set():
            if self._rate:
                wait = began + self._offered / self._rate - time.monotonic()
            else:
                wait = 0.005 if self._offered - self._gone > MOST_ON_THEIR_WAY else 0
            if wait <= 0:
                return
            self._ends.wait(min(wait, 0.1))

    def _poll(self, queue: Queue[Any]) -> None:
        """Do by hand what a consumer does."""
        while not self._ends.is_set():
            with suppress(
                StoreUnavailable
            ):  # such a short poll may not outlast a stall of the disk
                for delivery in queue.poll_many(3, SECOND):
                    self._settle(delivery)

    def _settle(self, delivery: Delivery[Any]) -> None:
        verdict = self._handle(delivery)
        if isinstance(verdict, Bury):
            delivery.bury("as its key says")
        elif verdict is not None:
            delivery.release(0.1 * SECOND)
        else:
            delivery.extend()
            delivery.ack()

    async def _consume(self) -> None:
        async def handle(delivery: Any) -> object:
            return self._handle(delivery)

        async with (
            AsyncQueue.open(self._url, "soak") as queue,
            queue.consume(handle, concurrency=4, max_attempts=3, backoff=BACKOFF),
        ):
            await asyncio.to_thread(self._ends.wait)

    def _handle(self, delivery: Delivered) -> object:
        """Fail some messages once, bury a few, and ack the rest."""
        if delivery.attempt == 1:
            self._lateness.add(delivery.delivered_at - delivery.due_at)
            if delivery.key.endswith("7"):
                return Retry(0.1 * SECOND)
        if not delivery.key.startswith("beat"):
            self._count(gone=1)
        return Bury("as its key says") if delivery.key.endswith("44") else None

    def _clear_up(self, queue: Queue[Any]) -> None:
        """Look at the queue as an operator does, revive some burials and purge the old ones."""
        while not self._ends.wait(INTERVAL):
            self._in_queue = queue.stats().total
            queue.cron.list()
            for burial in queue.buried(3):
                self._count(offered=queue.revive(burial.key, SECOND))
            queue.purge_buried(datetime.now(UTC) - KEEP_BURIED)

    def _count(self, offered: int = 0, gone: int = 0) -> None:
        with self._counting:
            self._offered += offered
            self._gone += gone


def main() -> None:
    url, rate, seconds = sys.argv[1:]
    Traffic(url, float(rate)).run(float(seconds))


if __name__ == "__main__":
    main()
