"""The limit of a bulk write: raw COPY into the same table, by as many connections as Spark has."""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from time import perf_counter

import psycopg

from bench.contender import Contender
from bench.reminders import PARTS, make_table, reminder_rows
from duequeue.bulk.postgres import encoded

COPY = """
    COPY duequeue_message (key, payload, due_at, asked_at, created_at, kind_id)
    FROM STDIN (FORMAT binary)
"""
HEADER, TRAILER = b"PGCOPY\n\xff\r\n\0" + bytes(8), b"\xff\xff"


class CopyTogether(Contender):
    """Sends bytes that were made beforehand, in one COPY for each connection."""

    notes = "no Spark; the bytes are made beforehand; looks for no conflict"

    def write_new(self, messages: int) -> float:
        """Send the bytes."""
        make_table(self.url)
        bounds = [messages * part // PARTS for part in range(PARTS + 1)]
        shares = [
            [encoded(rows) for rows in reminder_rows(first, last)]
            for first, last in pairwise(bounds)
        ]
        with ThreadPoolExecutor(PARTS) as pool:
            began = perf_counter()
            list(pool.map(self._send, shares))
            return perf_counter() - began

    def _send(self, chunks: list[memoryview]) -> None:
        with (
            psycopg.connect(self.url, autocommit=True) as connection,
            connection.cursor() as cursor,
            cursor.copy(COPY) as copy,
        ):
            copy.write(HEADER)
            for chunk in chunks:
                copy.write(chunk)
            copy.write(TRAILER)
