"""The peer Celery, on Redis."""

import threading
from collections.abc import Callable
from typing import Any

from celery import Celery
from celery.contrib.testing.worker import start_worker

from bench.contender import Contender, Tally, pause, stamp, timed

THREADS = 8


class OnRedis(Contender):
    """Uses threads, a prefetch of a hundred each, late acks and no results."""

    notes = "acks late, so that a crash loses nothing"

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._celery = Celery("bench", broker=url)
        self._celery.conf.update(
            task_acks_late=True, task_ignore_result=True, worker_prefetch_multiplier=100
        )
        self._look: Callable[[Any], object] = lambda _: None

        @self._celery.task(name="bench")
        def handle(payload: Any) -> None:
            self._look(payload)

        self._handle = handle

    def close(self) -> None:
        """Close its pool."""
        self._celery.close()

    def load(self, messages: int) -> None:
        """Send."""
        self.offer_one(messages)

    def offer_one(self, messages: int) -> float:
        """Send."""
        return timed(messages, lambda _: self._handle.delay(self.payload))

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
            threading.Event().wait(pause())
            self._handle.delay(stamp())

    def _work(self, tally: Tally, look: Callable[[Any], None], ready: Callable[[], None]) -> None:
        self._look = look
        with start_worker(
            self._celery, concurrency=THREADS, pool="threads", perform_ping_check=False
        ):
            ready()
            tally.wait()
