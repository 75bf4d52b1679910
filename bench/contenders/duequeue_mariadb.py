"""DueQueue's blocking face on MariaDB, where SQL can create a backlog."""

import time

from bench.contenders.duequeue_blocking import Blocking
from bench.filling import YEAR
from tests.fixtures.mariadb import connected

FUTURE = """
    INSERT INTO duequeue_message (due_at, asked_at, created_at, kind_id, `key`, payload)
    SELECT %s + seq, %s + seq, 0, kind.id, CONCAT('future-', seq), '1'
    FROM duequeue_kind AS kind, seq_1_to_{messages}
"""


class OnMariadb(Blocking):
    """`Queue` on MariaDB."""

    def fill_future(self, messages: int) -> None:
        """Insert into the table."""
        after = round((time.time() + YEAR) * 1000)
        with connected(self.url) as cursor:
            cursor.execute(FUTURE.format(messages=messages), (after, after))
            cursor.execute("ANALYZE TABLE duequeue_message")
