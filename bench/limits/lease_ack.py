"""The limit of a stream: lease and ack, and do nothing in between."""

from time import perf_counter

from bench.contender import Contender
from bench.reminders import QUEUE, full_table
from duequeue import Queue

CHUNK = 1000


class LeaseAck(Contender):
    """A plain loop in one process, without Spark."""

    notes = "no Spark; writes nothing"

    def drain(self, messages: int) -> float:
        """Call `try_poll_many` and `ack_many`."""
        full_table(self.url, messages)
        with Queue.open(self.url, QUEUE) as queue:
            began = perf_counter()
            left = messages
            while left > 0:
                left -= queue.ack_many(queue.try_poll_many(CHUNK))
            return perf_counter() - began
