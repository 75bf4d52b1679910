"""Limits of a batch on MariaDB: plain INSERT statements with many rows into the same table."""

import json
import time
from time import perf_counter

from bench.contender import Contender
from bench.contenders.duequeue_blocking import QUEUE
from duequeue import Queue
from tests.fixtures.mariadb import connected

INSERT = "INSERT INTO duequeue_message (due_at, asked_at, created_at, kind_id, `key`, payload)"
PLACES = "(%s, %s, %s, %s, %s, %s)"
CHUNK = 500


class Insert(Contender):
    """Sends statements that were written out beforehand, without looking for conflicts."""

    notes = "looks for no conflict and returns no outcome"

    def offer_batch(self, messages: int) -> float:
        """Send the statements, each of which is a transaction."""
        Queue.open(self.url, QUEUE).close()
        now, payload = time.time_ns() // 1_000_000, self.payload.encode().hex()
        rows = [f"({now}, {now}, {now}, 1, 'key-{n}', X'{payload}')" for n in range(messages)]
        texts = [
            f"{INSERT} VALUES {', '.join(rows[first : first + CHUNK])}"
            for first in range(0, messages, CHUNK)
        ]
        with connected(self.url) as cursor:
            began = perf_counter()
            for text in texts:
                cursor.execute(text)
            return perf_counter() - began


class ExecuteMany(Contender):
    """Lets the driver write values into such statements, as an application does."""

    notes = "the same by PyMySQL's executemany, 1,000 rows a transaction"

    def offer_batch(self, messages: int) -> float:
        """Call `executemany`, and commit."""
        Queue.open(self.url, QUEUE).close()
        with connected(self.url) as cursor:
            began = perf_counter()
            for first in range(0, messages, 2 * CHUNK):
                cursor.execute("BEGIN")
                cursor.executemany(f"{INSERT} VALUES {PLACES}", self._rows(first, 2 * CHUNK))
                cursor.execute("COMMIT")
            return perf_counter() - began

    def _rows(self, first: int, many: int) -> list[tuple[int | str | bytes, ...]]:
        now = time.time_ns() // 1_000_000
        return [
            (now, now, now, 1, f"key-{n}", json.dumps(self.payload).encode())
            for n in range(first, first + many)
        ]
