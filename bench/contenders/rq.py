"""The peer RQ, on Redis."""

import redis
from rq import Queue, SimpleWorker

from bench.contender import Contender, Tally, timed

tally = Tally(0)


def handle(payload: str) -> None:  # noqa: ARG001 - it does nothing
    """Take a call; RQ finds functions by the name of their module."""
    tally.count()


class OnRedis(Contender):
    """Uses its worker that does not fork for each message, and keeps no results."""

    notes = "one process without forks, one at a time"

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._redis = redis.Redis.from_url(url)
        self._queue = Queue("bench", connection=self._redis)

    def close(self) -> None:
        """Close its pool."""
        self._redis.close()

    def load(self, messages: int) -> None:
        """Enqueue."""
        self.offer_one(messages)

    def offer_one(self, messages: int) -> float:
        """Enqueue."""
        return timed(messages, lambda _: self._queue.enqueue(handle, self.payload, result_ttl=0))

    def offer_batch(self, messages: int) -> float:
        """Enqueue many."""
        each = [Queue.prepare_data(handle, (self.payload,), result_ttl=0) for _ in range(messages)]
        return timed(1, lambda _: self._queue.enqueue_many(each))

    def consume(self, messages: int) -> float:
        """Run a worker until no message is left."""
        global tally  # noqa: PLW0603 - RQ calls a function of this module
        tally = Tally(messages)
        worker = SimpleWorker([self._queue], connection=self._redis)
        worker.work(burst=True, logging_level="ERROR")
        return tally.seconds
