"""DueQueue's blocking face on PostgreSQL, where SQL can create a backlog."""

from datetime import timedelta

from bench.contenders.duequeue_blocking import QUEUE, Blocking
from bench.filling import fill_table
from duequeue import Queue

SHORT_LEASE = timedelta(seconds=2)

FUTURE = """
    INSERT INTO duequeue_message (due_at, asked_at, created_at, kind_id, key, payload)
    SELECT number, number, 0, kind.id, 'future-' || number, '\\x31'
    FROM duequeue_kind AS kind, generate_series(%(after)s, %(after)s + %(messages)s - 1) AS number
"""


class OnPostgres(Blocking):
    """`Queue` on PostgreSQL."""

    def fill_future(self, messages: int) -> None:
        """Insert into the table."""
        fill_table(self.url, "duequeue_message", FUTURE, messages)

    def abandon(self, messages: int) -> float:
        """Take messages without settling them, and return when their lease ends, in ms."""
        with Queue.open(self.url, QUEUE, lease=SHORT_LEASE) as queue:
            deliveries = queue.try_poll_many(messages)
        return deliveries[-1].lease_until.timestamp() * 1000
