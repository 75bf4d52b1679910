"""The limit for our consumers: a bare loop of `try_poll_many(100)` and `ack_many`."""

from collections.abc import Callable
from time import perf_counter, time_ns

from bench.contenders.duequeue_base import QUEUE, OursBase
from duequeue import Queue


class Contestant(OursBase):
    """No handler, no threads, no prefetch."""

    name = "DueQueue, bare loop"

    def drain(self, url: str, messages: int) -> float:
        """Poll and ack until all are gone."""
        with Queue.open(url, QUEUE) as queue:
            began = perf_counter()
            while messages > 0:
                messages -= queue.ack_many(queue.try_poll_many(100))
            return perf_counter() - began

    def receive(self, url: str, messages: int, ready: Callable[[], None]) -> list[int]:
        """Poll one by one."""
        ages: list[int] = []
        with Queue.open(url, QUEUE) as queue:
            ready()
            while len(ages) < messages:
                if delivery := queue.poll():
                    ages.append(time_ns() - delivery.payload)
                    delivery.ack()
        return ages
