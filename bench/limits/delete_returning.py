"""The limit of a consumer: delete a hundred and return them, without a lease."""

from time import perf_counter

import psycopg

from bench.contender import BATCH, Contender
from bench.contenders.duequeue_blocking import Blocking
from duequeue.stores.sql.postgres.settings import SESSION_SETTINGS

# It starts at a mark, as our own claims do; otherwise it would walk over all deleted rows.
DELETE = """
    DELETE FROM duequeue_message
    WHERE id = ANY(ARRAY(
        SELECT id FROM duequeue_message
        WHERE kind_id = 1 AND (due_at, id) > (%s, %s)
        ORDER BY due_at, id LIMIT %s FOR UPDATE SKIP LOCKED
    ))
    RETURNING due_at, id, key, payload
"""


class Delete(Contender):
    """Uses one statement, so a crash loses the messages."""

    notes = "at most once, so a crash loses messages"

    def load(self, messages: int) -> None:
        """Fill the same table."""
        ours = Blocking(self.url)
        ours.load(messages)
        ours.close()

    def poll_ack_many(self, messages: int) -> float:
        """Delete a hundred at a time."""
        mark = (0, 0)
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(SESSION_SETTINGS)
            began = perf_counter()
            while messages > 0:
                rows = connection.execute(DELETE, [*mark, BATCH], binary=True).fetchall()
                mark = max(rows)[:2]
                messages -= len(rows)
            return perf_counter() - began
