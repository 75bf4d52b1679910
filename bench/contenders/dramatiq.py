"""The peer dramatiq, on Redis."""

import time
from collections.abc import Callable
from typing import Any

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from bench.contender import Contender, Tally, pause, stamp, timed

THREADS = 8


class OnRedis(Contender):
    """Uses threads, with its defaults."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._broker = RedisBroker(url=url, middleware=[])
        self._look: Callable[[Any], object] = lambda _: None

        @dramatiq.actor(actor_name="bench", broker=self._broker)
        def handle(payload: Any) -> None:
            self._look(payload)

        self._handle = handle

    def close(self) -> None:
        """Close its pool."""
        self._broker.close()

    def load(self, messages: int) -> None:
        """Send."""
        self.offer_one(messages)

    def offer_one(self, messages: int) -> float:
        """Send."""
        return timed(messages, lambda _: self._handle.send(self.payload))

    def consume(self, messages: int) -> float:
        """Run a worker on threads."""
        tally = Tally(messages)
        self._work(tally, lambda _: tally.count(), lambda: None)
        return tally.seconds

    def receive(self, messages: int, ready: Callable[[], None]) -> list[float]:
        """Run a worker on threads."""
        ages, tally = list[float](), Tally(messages)

        def look(sent: float) -> None:
            ages.append(stamp() - sent)
            tally.count()

        self._work(tally, look, ready)
        return ages

    def ping(self, messages: int) -> None:
        """Send."""
        for _ in range(messages):
            time.sleep(pause())
            self._handle.send(stamp())

    def _work(self, tally: Tally, look: Callable[[Any], None], ready: Callable[[], None]) -> None:
        self._look = look
        worker = dramatiq.Worker(self._broker, worker_threads=THREADS, worker_timeout=100)
        worker.start()
        ready()
        tally.wait()
        worker.stop()
