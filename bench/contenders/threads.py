"""Our consumer on threads."""

import threading
from collections.abc import Callable
from time import perf_counter, time_ns

from bench.contenders.duequeue_base import QUEUE, OursBase
from duequeue import Delivery, Queue


class Contestant(OursBase):
    """`Queue.consume` with its defaults."""

    name = "DueQueue, threads"

    def drain(self, url: str, messages: int) -> float:
        """Count calls of a handler that does nothing else."""
        began = perf_counter()
        self._consume(url, messages, lambda _: 0, lambda: None)
        return perf_counter() - began

    def receive(self, url: str, messages: int, ready: Callable[[], None]) -> list[int]:
        """Note the age of each message."""
        return self._consume(url, messages, lambda d: time_ns() - d.payload, ready)

    def _consume(
        self,
        url: str,
        messages: int,
        look: Callable[[Delivery[int]], int],
        ready: Callable[[], None],
    ) -> list[int]:
        seen: list[int] = []
        done = threading.Event()

        def handle(delivery: Delivery[int]) -> None:
            seen.append(look(delivery))
            if len(seen) == messages:
                done.set()

        with Queue.open(url, QUEUE) as queue, queue.consume(handle):
            ready()
            done.wait()
        return seen
