"""DueQueue's blocking face, on any store."""

import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from time import perf_counter
from typing import Any

from bench.contender import BATCH, Contender, Tally, lead_time, pause, stamp, timed
from duequeue import Delivery, Message, Queue

QUEUE = "bench"


class Blocking(Contender):
    """`Queue`, with every default."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.queue: Queue[Any] = Queue.open(url, QUEUE)

    def close(self) -> None:
        """Close the queue."""
        self.queue.close()

    def load(self, messages: int) -> None:
        """Offer a batch."""
        self.queue.offer_batch(Message(f"load-{n}", self.payload) for n in range(messages))

    def offer_one(self, messages: int) -> float:
        """Call `offer`."""
        return timed(messages, self._offer)

    def offer_together(self, messages: int, callers: int) -> float:
        """Call `offer` on threads."""
        with ThreadPoolExecutor(callers) as pool:
            began = perf_counter()
            list(pool.map(self._offer, range(messages)))
            return perf_counter() - began

    def offer_batch(self, messages: int) -> float:
        """Call `offer_batch`."""
        batch = (Message(f"key-{n}", self.payload) for n in range(messages))
        return timed(1, lambda _: self.queue.offer_batch(batch))

    def poll_ack_one(self, messages: int) -> float:
        """Call `try_poll` and `ack`."""
        return timed(messages, lambda _: self._take().ack())

    def poll_ack_many(self, messages: int) -> float:
        """Call `try_poll_many` and `ack_many`."""
        began = perf_counter()
        while messages > 0:
            messages -= self.queue.ack_many(self.queue.try_poll_many(BATCH))
        return perf_counter() - began

    def consume(self, messages: int) -> float:
        """Run `consume`."""
        tally = Tally(messages)
        with self.queue.consume(lambda _: tally.count()):
            tally.wait()
        return tally.seconds

    def receive(self, messages: int, ready: Callable[[], None]) -> list[float]:
        """Run `consume`."""
        return self._handled(messages, ready, lambda delivery: stamp() - delivery.payload)

    def ping(self, messages: int) -> None:
        """Call `offer`."""
        for number in range(messages):
            time.sleep(pause())
            self.queue.offer(f"ping-{number}", stamp())

    def keep_time(self, messages: int, seconds: float) -> list[float]:
        """Offer for random instants, and run `consume`."""
        start = datetime.now(UTC) + timedelta(seconds=lead_time(messages))
        self.queue.offer_batch(
            Message(f"late-{n}", self.payload, start + timedelta(seconds=random.random() * seconds))
            for n in range(messages)
        )
        return self._handled(messages, lambda: None, _lateness)

    def take_turns(self, turns: int) -> list[float]:
        """Call `offer`, `try_poll` and `ack`."""
        taken: list[float] = []
        for number in range(turns):
            self._offer(number)
            began = perf_counter()
            delivery = self._take()
            taken.append((perf_counter() - began) * 1000)
            delivery.ack()
        return taken

    def stay_idle(self, seconds: float) -> None:
        """Run `consume`."""
        with self.queue.consume(lambda _: None):
            time.sleep(seconds)

    def _offer(self, number: int) -> None:
        self.queue.offer(f"key-{number}", self.payload)

    def _take(self) -> Delivery[Any]:
        delivery = self.queue.try_poll()
        assert delivery is not None
        return delivery

    def _handled(
        self, messages: int, ready: Callable[[], None], look: Callable[[Delivery[Any]], float]
    ) -> list[float]:
        seen: list[float] = []
        tally = Tally(messages)

        def handle(delivery: Delivery[Any]) -> None:
            seen.append(look(delivery))
            tally.count()

        with self.queue.consume(handle):
            ready()
            tally.wait()
        return seen


def _lateness(delivery: Delivery[Any]) -> float:
    return (datetime.now(UTC) - delivery.due_at) / timedelta(milliseconds=1)
