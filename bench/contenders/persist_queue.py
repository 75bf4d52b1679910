"""The peer persist-queue, on SQLite."""

from pathlib import Path

from persistqueue import SQLiteAckQueue

from bench.contender import Contender, timed
from bench.sqlite_file import SqliteFile


class PersistQueue(Contender):
    """Its queue with acks, which keeps finished messages until it is cleared."""

    notes = "keeps finished messages; no due times, no leases"

    def __init__(self, url: str) -> None:
        super().__init__(url)
        file = SqliteFile.of(url)
        self._queue = SQLiteAckQueue(str(Path(file.path).parent), multithreading=True)
        for connection in {self._queue._getter, self._queue._putter}:  # noqa: SLF001 - it has no option for it
            file.level(connection)

    def close(self) -> None:
        """Close the file."""
        self._queue.close()

    def load(self, messages: int) -> None:
        """Put messages."""
        self.offer_one(messages)

    def offer_one(self, messages: int) -> float:
        """Put messages."""
        return timed(messages, lambda _: self._queue.put(self.payload))

    def poll_ack_one(self, messages: int) -> float:
        """Get one, and ack it."""
        return timed(messages, lambda _: self._queue.ack(id=self._queue.get(raw=True)["pqid"]))
