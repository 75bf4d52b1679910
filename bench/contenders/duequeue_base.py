"""What our own contenders share: how messages get in."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bench.contender import PAYLOAD
from duequeue import Message, Queue

QUEUE = "bench"


class OursBase:
    """Tables, bulk loading and a producer."""

    def prepare(self, url: str) -> None:
        """Open once."""
        Queue.open(url, QUEUE).close()

    def load(self, url: str, messages: int) -> None:
        """Offer one big batch."""
        with Queue.open(url, QUEUE) as queue:
            queue.offer_batch(Message(f"key-{n}", PAYLOAD) for n in range(messages))

    @contextmanager
    def producer(self, url: str) -> Iterator[Callable[[str, int], object]]:
        """Offer one by one."""
        with Queue.open(url, QUEUE) as queue:
            yield queue.offer
