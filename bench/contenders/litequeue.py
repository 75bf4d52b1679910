"""The peer litequeue, on SQLite."""

from litequeue import LiteQueue

from bench.contender import Contender, timed
from bench.sqlite_file import SqliteFile


class Litequeue(Contender):
    """Has one table, which keeps finished messages until it is pruned."""

    notes = "keeps finished messages; no due times, no leases"

    def __init__(self, url: str) -> None:
        super().__init__(url)
        file = SqliteFile.of(url)
        self._queue = LiteQueue(file.path)
        file.level(self._queue.conn)

    def close(self) -> None:
        """Close the file."""
        self._queue.close()

    def load(self, messages: int) -> None:
        """Put all messages in one transaction."""
        with self._queue.transaction():
            self.offer_one(messages)

    def offer_one(self, messages: int) -> float:
        """Put messages."""
        return timed(messages, lambda _: self._queue.put(self.payload))

    def offer_batch(self, messages: int) -> float:
        """Put all messages in one transaction."""
        return timed(1, lambda _: self.load(messages))

    def poll_ack_one(self, messages: int) -> float:
        """Pop one, and mark it as done."""
        return timed(messages, lambda _: self._queue.done(self._queue.pop().message_id))
