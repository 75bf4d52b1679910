"""The peer kombu, Celery's library for messages, on MariaDB through SQLAlchemy."""

from kombu import Connection

from bench.contender import Contender, timed


class OnMariadb(Contender):
    """Its SQLAlchemy transport and its simple queue."""

    notes = "no due times, no leases; acked messages stay in the table, marked as invisible"

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._connection = Connection(url.replace("mariadb://", "sqla+mysql+pymysql://"))
        self._queue = self._connection.SimpleQueue("bench", serializer="json")

    def close(self) -> None:
        """Close the connection."""
        self._queue.close()
        self._connection.release()

    def load(self, messages: int) -> None:
        """Put messages."""
        self.offer_one(messages)

    def offer_one(self, messages: int) -> float:
        """Put messages."""
        return timed(messages, lambda _: self._queue.put(self.payload))

    def poll_ack_one(self, messages: int) -> float:
        """Get one, and ack it."""
        return timed(messages, lambda _: self._queue.get().ack())
