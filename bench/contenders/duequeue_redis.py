"""DueQueue's blocking face on Redis."""

from datetime import timedelta

from bench.contenders.duequeue_blocking import Blocking
from duequeue import Message

YEAR = timedelta(days=365)


class OnRedis(Blocking):
    """`Queue` on Redis."""

    def fill_future(self, messages: int) -> None:
        """Offer them, since nothing else knows the layout."""
        self.queue.offer_batch(Message(f"future-{n}", 1, YEAR) for n in range(messages))
