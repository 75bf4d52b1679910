"""The limit of a batch: raw COPY into the same table, with the same indexes."""

import time
from time import perf_counter

import psycopg

from bench.contender import Contender
from bench.contenders.duequeue_blocking import QUEUE
from duequeue import Queue

COPY = "COPY duequeue_message (due_at, asked_at, created_at, kind_id, key, payload) FROM STDIN"
CHUNK = 1000


class Copy(Contender):
    """Sends rows that were written out beforehand in one COPY, without looking for conflicts."""

    notes = "looks for no conflict and returns no outcome"

    def offer_batch(self, messages: int) -> float:
        """Send the rows."""
        Queue.open(self.url, QUEUE).close()
        now, payload = time.time_ns() // 1_000_000, self.payload.encode().hex()
        rows = [f"{now}\t{now}\t{now}\t1\tkey-{n}\t\\\\x{payload}\n" for n in range(messages)]
        chunks = ["".join(rows[n : n + CHUNK]) for n in range(0, messages, CHUNK)]
        with psycopg.connect(self.url, autocommit=True) as connection:
            began = perf_counter()
            with connection.cursor() as cursor, cursor.copy(COPY) as copy:
                for chunk in chunks:
                    copy.write(chunk)
            return perf_counter() - began
