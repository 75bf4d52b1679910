"""The peer persist-queue, on MariaDB."""

from urllib.parse import urlsplit

from persistqueue import MySQLQueue

from bench.contender import Contender, timed


class PersistQueue(Contender):
    """Its queue on MySQL, which deletes a message as soon as it is taken."""

    notes = "at most once, so a crash loses messages; no due times"

    def __init__(self, url: str) -> None:
        super().__init__(url)
        parts = urlsplit(url)
        self._queue = MySQLQueue(
            host=parts.hostname,
            port=parts.port,
            user=parts.username,
            passwd=parts.password,
            db_name=parts.path.removeprefix("/"),
        )

    def load(self, messages: int) -> None:
        """Put messages."""
        self.offer_one(messages)

    def offer_one(self, messages: int) -> float:
        """Put messages."""
        return timed(messages, lambda _: self._queue.put(self.payload))

    def poll_ack_one(self, messages: int) -> float:
        """Get one, which deletes it."""
        return timed(messages, lambda _: self._queue.get())
