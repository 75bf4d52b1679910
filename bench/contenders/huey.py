"""The peer huey, on SQLite and on Redis."""

import logging
import sqlite3
import threading
from collections.abc import Callable
from typing import Any

from huey import Huey, RedisHuey
from huey.storage import SqliteStorage

from bench.contender import Contender, Tally, pause, stamp, timed
from bench.sqlite_file import SqliteFile

THREADS = 8
READY_AFTER = 1.0  # seconds, because it does not report when it waits


class HueyBase(Contender):
    """Keeps no results, as it recommends for tasks that return nothing."""

    notes = "no ack, so a crash loses messages that were taken"

    def __init__(self, url: str) -> None:
        super().__init__(url)
        logging.getLogger("huey").setLevel(logging.ERROR)
        self._huey = self.connect()
        self._look: Callable[[Any], object] = lambda _: None

        @self._huey.task(name="bench")
        def handle(payload: Any) -> None:
            self._look(payload)

        self._handle = handle

    def connect(self) -> Huey:
        """Connect to the store."""
        raise NotImplementedError

    def load(self, messages: int) -> None:
        """Enqueue."""
        self.offer_one(messages)

    def offer_one(self, messages: int) -> float:
        """Enqueue."""
        return timed(messages, lambda _: self._handle(self.payload))

    def poll_ack_one(self, messages: int) -> float:
        """Dequeue, because it has no acks."""
        return timed(messages, lambda _: self._huey.dequeue())

    def consume(self, messages: int) -> float:
        """Run a consumer on threads."""
        tally = Tally(messages)
        self._look = lambda _: tally.count()
        self._work(tally, lambda: None)
        return tally.seconds

    def receive(self, messages: int, ready: Callable[[], None]) -> list[float]:
        """Run a consumer on threads."""
        ages, tally = list[float](), Tally(messages)

        def look(sent: float) -> None:
            ages.append(stamp() - sent)
            tally.count()

        self._look = look
        self._work(tally, ready)
        return ages

    def ping(self, messages: int) -> None:
        """Enqueue."""
        for _ in range(messages):
            threading.Event().wait(pause())
            self._handle(stamp())

    def _work(self, tally: Tally, ready: Callable[[], None]) -> None:
        consumer = self._huey.create_consumer(
            workers=THREADS, periodic=False, check_worker_health=False, initial_delay=0.01
        )
        consumer.start()
        threading.Timer(READY_AFTER, ready).start()
        tally.wait()
        consumer.stop()


class OnSqlite(HueyBase):
    """Uses a file with the same pragmas as ours."""

    def connect(self) -> Huey:
        """Open the file."""
        return Huey("bench", storage_class=LevelStorage, url=self.url, results=False)


class LevelStorage(SqliteStorage):
    """Its own storage with the durability of the file."""

    def __init__(self, name: str, url: str, **options: Any) -> None:
        self._file = SqliteFile.of(url)
        super().__init__(name, self._file.path, **options)

    def _create_connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection = super()._create_connection()
        self._file.level(connection)
        return connection


class OnRedis(HueyBase):
    """Uses a blocking pop."""

    def connect(self) -> Huey:
        """Connect to the server."""
        return RedisHuey("bench", url=self.url, results=False)
