"""DueQueue's blocking face on PostgreSQL, where a backlog can be made in SQL."""

from bench.contenders.duequeue_blocking import Blocking
from bench.filling import fill_table

FUTURE = """
    INSERT INTO duequeue_message (due_at, asked_at, created_at, kind_id, key, payload)
    SELECT due_at, due_at, 0, kind.id, 'future-' || number, '\\x31'
    FROM
        generate_series(1, %(messages)s) AS number,
        LATERAL (SELECT extract(epoch FROM now())::bigint * 1000 + 31536000000 + number) AS due (due_at),
        duequeue_kind AS kind
"""


class OnPostgres(Blocking):
    """`Queue` on PostgreSQL."""

    def fill_future(self, messages: int) -> None:
        """Insert into the table."""
        fill_table(self.url, "duequeue_message", FUTURE, {"messages": messages})
