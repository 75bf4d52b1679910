"""DueQueue on PostgreSQL with a history: what it costs that each ack writes a row."""

from time import perf_counter
from typing import Any

from bench.contender import BATCH, Contender
from bench.contenders.duequeue_blocking import QUEUE
from duequeue import Message, Queue


class WithHistory(Contender):
    """`Queue` with `history=True`; only methods that settle messages differ."""

    notes = "each ack writes a row"

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._queue: Queue[Any] = Queue.open(url, QUEUE, history=True)

    def close(self) -> None:
        """Close the queue."""
        self._queue.close()

    def load(self, messages: int) -> None:
        """Offer a batch."""
        self._queue.offer_batch(Message(f"load-{n}", self.payload) for n in range(messages))

    def poll_ack_many(self, messages: int) -> float:
        """Call `try_poll_many` and `ack_many`."""
        began = perf_counter()
        while messages > 0:
            messages -= self._queue.ack_many(self._queue.try_poll_many(BATCH))
        return perf_counter() - began
