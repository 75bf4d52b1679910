"""The algorithm that DueQueue started with: an index on the lease, two statements per claim."""

import time
import uuid
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

import psycopg
from psycopg_pool import ConnectionPool

from bench.contender import BATCH, Contender, chunks, timed
from bench.filling import fill_table

KIND = "bench|str"
LEASE = 300_000
ROWS_PER_INSERT = 200

TABLE = """
    CREATE TABLE seed_message (
        id bigserial PRIMARY KEY,
        key varchar(200) NOT NULL,
        kind varchar(100) NOT NULL,
        payload bytea NOT NULL,
        due_at bigint NOT NULL,
        asked_at bigint NOT NULL,
        lock_uuid varchar(36),
        created_at bigint NOT NULL
    );
    CREATE UNIQUE INDEX seed_message_key ON seed_message (key, kind);
    CREATE INDEX seed_message_due ON seed_message (kind, due_at);
    CREATE INDEX seed_message_lock ON seed_message (lock_uuid, id)
"""
INSERT = """
    INSERT INTO seed_message (key, kind, payload, due_at, asked_at, created_at)
    VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING
"""
LOCK_KEY = """
    SELECT id, payload, due_at, asked_at FROM seed_message WHERE key = %s AND kind = %s FOR UPDATE
"""
REPLACE = """
    UPDATE seed_message
    SET payload = %s, due_at = %s, asked_at = %s, created_at = %s, lock_uuid = NULL
    WHERE key = %s AND kind = %s AND due_at = %s AND asked_at = %s
"""
EXISTING = "SELECT key FROM seed_message WHERE kind = %s AND key = ANY(%s)"
LOCK_FIRST = """
    SELECT id, key, payload, due_at FROM seed_message
    WHERE kind = %s AND due_at <= %s ORDER BY due_at LIMIT 1 FOR UPDATE SKIP LOCKED
"""
LEASE_ONE = "UPDATE seed_message SET due_at = %s, lock_uuid = %s WHERE id = %s AND due_at = %s"
LEASE_MANY = """
    UPDATE seed_message SET due_at = %s, lock_uuid = %s
    WHERE id IN (
        SELECT id FROM seed_message
        WHERE kind = %s AND due_at <= %s ORDER BY due_at LIMIT %s FOR UPDATE SKIP LOCKED
    )
"""
READ_LEASED = "SELECT id, key, payload, asked_at FROM seed_message WHERE lock_uuid = %s ORDER BY id"
ACK = "DELETE FROM seed_message WHERE lock_uuid = %s"
FUTURE = """
    INSERT INTO seed_message (key, kind, payload, due_at, asked_at, created_at)
    SELECT 'future-' || number, 'bench|str', '\\x31', number, number, 0
    FROM generate_series(%(after)s, %(after)s + %(messages)s - 1) AS number
"""


class Seed(Contender):
    """The algorithm rewritten with psycopg, statement by statement."""

    notes = "two statements per claim; an index on the lease"

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._pool = ConnectionPool(url, min_size=1, max_size=16, kwargs={"autocommit": True})
        with self._pool.connection() as connection:
            if connection.execute("SELECT to_regclass('seed_message')").fetchone() == (None,):
                connection.execute(TABLE)

    def close(self) -> None:
        """Close the pool."""
        self._pool.close()

    def load(self, messages: int) -> None:
        """Offer a batch."""
        self._offer_batch(f"load-{n}" for n in range(messages))

    def offer_one(self, messages: int) -> float:
        """Insert or ignore, and on conflict update."""
        return timed(messages, self._offer)

    def offer_together(self, messages: int, callers: int) -> float:
        """Do the same on threads."""
        with ThreadPoolExecutor(callers) as pool:
            began = perf_counter()
            list(pool.map(self._offer, range(messages)))
            return perf_counter() - began

    def offer_batch(self, messages: int) -> float:
        """Ask which keys exist, and insert the others."""
        return timed(1, lambda _: self._offer_batch(f"key-{n}" for n in range(messages)))

    def poll_ack_one(self, messages: int) -> float:
        """Lock one, lease it, and delete it."""
        return timed(messages, lambda _: self._ack(self._poll()))

    def poll_ack_many(self, messages: int) -> float:
        """Lease a hundred, read them, and delete them."""
        began = perf_counter()
        with self._pool.connection() as connection:
            while messages > 0:
                token, now = str(uuid.uuid4()), _now()
                connection.execute(LEASE_MANY, [now + LEASE, token, KIND, now, BATCH])
                connection.execute(READ_LEASED, [token]).fetchall()
                messages -= connection.execute(ACK, [token]).rowcount
        return perf_counter() - began

    def fill_future(self, messages: int) -> None:
        """Insert into the table."""
        fill_table(self.url, "seed_message", FUTURE, messages)

    def take_turns(self, turns: int) -> list[float]:
        """Offer, poll and ack."""
        taken: list[float] = []
        for number in range(turns):
            self._offer(number)
            began = perf_counter()
            token = self._poll()
            taken.append((perf_counter() - began) * 1000)
            self._ack(token)
        return taken

    def _offer(self, number: int) -> None:
        now, payload = _now(), self.payload.encode()
        with self._pool.connection() as connection:
            row = (f"key-{number}", KIND, payload, now, now, now)
            if connection.execute(INSERT, row).rowcount == 0:
                _replace(connection, f"key-{number}", payload, now)

    def _offer_batch(self, keys: Iterable[str]) -> None:
        payload, now = self.payload.encode(), _now()
        with self._pool.connection() as connection, connection.cursor() as cursor:
            for chunk in chunks(keys, ROWS_PER_INSERT):
                found = {key for (key,) in cursor.execute(EXISTING, [KIND, chunk]).fetchall()}
                rows = [(key, KIND, payload, now, now, now) for key in chunk if key not in found]
                with connection.transaction():
                    cursor.executemany(INSERT, rows)

    def _poll(self) -> str:
        token, now = str(uuid.uuid4()), _now()
        with self._pool.connection() as connection, connection.transaction():
            found = connection.execute(LOCK_FIRST, [KIND, now]).fetchone()
            assert found is not None
            connection.execute(LEASE_ONE, [now + LEASE, token, found[0], found[3]])
        return token

    def _ack(self, token: str) -> None:
        with self._pool.connection() as connection:
            connection.execute(ACK, [token])


def _replace(connection: psycopg.Connection, key: str, payload: bytes, now: int) -> None:
    with connection.transaction():
        found = connection.execute(LOCK_KEY, [key, KIND]).fetchone()
        if found is not None:
            connection.execute(REPLACE, [payload, now, now, now, key, KIND, found[2], found[3]])


def _now() -> int:
    return time.time_ns() // 1_000_000
