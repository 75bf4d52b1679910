"""The algorithm that DueQueue started with, on MariaDB; see `seed.py`."""

import time
import uuid
from collections.abc import Callable, Iterable
from time import perf_counter

from pymysql.err import OperationalError

from bench.contender import BATCH, Contender, chunks, timed
from tests.fixtures.mariadb import connected

KIND = "bench|str"
LEASE = 300_000
ROWS_PER_INSERT = 200
DEADLOCK = 1213

TABLE = """
    CREATE TABLE IF NOT EXISTS seed_message (
        id bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
        `key` varchar(200) NOT NULL,
        kind varchar(100) NOT NULL,
        payload mediumblob NOT NULL,
        due_at bigint NOT NULL,
        asked_at bigint NOT NULL,
        lock_uuid varchar(36),
        created_at bigint NOT NULL,
        UNIQUE KEY seed_message_key (`key`, kind),
        KEY seed_message_due (kind, due_at),
        KEY seed_message_lock (lock_uuid, id)
    ) ENGINE = InnoDB
"""
INSERT = """
    INSERT IGNORE INTO seed_message (`key`, kind, payload, due_at, asked_at, created_at)
    VALUES (%s, %s, %s, %s, %s, %s)
"""
EXISTING = "SELECT `key` FROM seed_message WHERE kind = %s AND `key` IN %s"
LOCK = """
    SELECT id, `key`, payload, due_at FROM seed_message
    WHERE kind = %s AND due_at <= %s ORDER BY due_at LIMIT %s FOR UPDATE SKIP LOCKED
"""
LEASE_THEM = "UPDATE seed_message SET due_at = %s, lock_uuid = %s WHERE id IN %s"
ACK = "DELETE FROM seed_message WHERE lock_uuid = %s"


class Seed(Contender):
    """The algorithm rewritten with PyMySQL, statement by statement."""

    notes = "two statements per claim; an index on the lease"

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._opened = connected(url)
        self._cursor = self._opened.__enter__()
        self._cursor.execute(TABLE)

    def close(self) -> None:
        """Close the connection."""
        self._opened.__exit__(None, None, None)

    def load(self, messages: int) -> None:
        """Offer a batch."""
        self._offer_batch(f"load-{n}" for n in range(messages))

    def offer_one(self, messages: int) -> float:
        """Insert or ignore."""
        return timed(messages, lambda n: self._cursor.execute(INSERT, self._row(f"key-{n}")))

    def offer_batch(self, messages: int) -> float:
        """Ask which keys exist, and insert the others."""
        return timed(1, lambda _: self._offer_batch(f"key-{n}" for n in range(messages)))

    def poll_ack_one(self, messages: int) -> float:
        """Lock one, lease it, and delete it."""
        return timed(messages, lambda _: self._take(1))

    def poll_ack_many(self, messages: int) -> float:
        """Lock a hundred, lease them, and delete them."""
        began = perf_counter()
        while messages > 0:
            messages -= self._take(BATCH)
        return perf_counter() - began

    def _offer_batch(self, keys: Iterable[str]) -> None:
        for chunk in chunks(keys, ROWS_PER_INSERT):
            self._cursor.execute(EXISTING, (KIND, chunk))
            found = {key for (key,) in self._cursor.fetchall()}
            self._cursor.executemany(INSERT, [self._row(key) for key in chunk if key not in found])

    def _take(self, most: int) -> int:
        token = str(uuid.uuid4())
        _after_deadlocks(lambda: self._lease(token, most))
        return _after_deadlocks(lambda: self._cursor.execute(ACK, (token,)))

    def _lease(self, token: str, most: int) -> int:
        now = _now()
        self._cursor.execute("BEGIN")
        self._cursor.execute(LOCK, (KIND, now, most))
        ids = [row[0] for row in self._cursor.fetchall()]
        if ids:
            self._cursor.execute(LEASE_THEM, (now + LEASE, token, ids))
        return self._cursor.execute("COMMIT")

    def _row(self, key: str) -> tuple[object, ...]:
        now = _now()
        return key, KIND, self.payload.encode(), now, now, now


def _after_deadlocks(call: Callable[[], int]) -> int:
    """Make a call, and make it again after each deadlock, which has rolled it back."""
    while True:
        try:
            return call()
        except OperationalError as error:
            if error.args[0] != DEADLOCK:
                raise


def _now() -> int:
    return time.time_ns() // 1_000_000
