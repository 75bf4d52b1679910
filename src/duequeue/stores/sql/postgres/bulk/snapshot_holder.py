"""A process that keeps a snapshot, because Spark ends the planning process while others read."""

import os
from contextlib import closing
from time import monotonic
from typing import NamedTuple

import psycopg

from duequeue.errors import StoreError
from duequeue.stores.sql.postgres.bulk.detached import Answer, detach
from duequeue.stores.sql.postgres.settings import PostgresSettings

BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_EXPORT = "SELECT pg_export_snapshot()"
_TAKEN = "taken: "
_LISTEN = "LISTEN duequeue_snapshot"
# How often, in seconds, to check whether the snapshot is still needed.
_BEAT = 1.0
# Not every version of PostgreSQL has all of these settings.
_BE_PATIENT = """
    SELECT set_config(name, '0', false) FROM pg_settings
    WHERE name IN (
        'idle_in_transaction_session_timeout', 'idle_session_timeout', 'transaction_timeout'
    )
"""


def hold(settings: PostgresSettings, parts: int, seconds: float) -> str:
    """Take a snapshot, and keep it until all parts are read or the seconds are over."""
    holder = _Holder(settings, parts, monotonic() + seconds, owner=os.getppid())
    try:
        answer = detach(holder.run)
    except OSError as error:  # out of processes or file descriptors
        answer = str(error)
    if not answer.startswith(_TAKEN):
        reason = settings.address.clean(answer or "its process ended")
        raise StoreError(f"no snapshot could be kept: {reason}")
    return answer.removeprefix(_TAKEN)


class _Holder(NamedTuple):
    settings: PostgresSettings
    parts: int
    ends_at: float
    owner: int  # the parent process of Spark's workers, which themselves come and go

    def run(self, answer: Answer) -> None:
        with closing(self._connect()) as listening, closing(self._connect()) as holding:
            listening.execute(_LISTEN)
            holding.execute(BEGIN)
            ((snapshot,),) = holding.execute(_EXPORT).fetchall()
            answer(_TAKEN + snapshot)
            self._wait(listening, snapshot)

    def _connect(self) -> psycopg.Connection:
        connection = psycopg.connect(self.settings.conninfo, **self.settings.connection_arguments)
        connection.execute(_BE_PATIENT)
        return connection

    def _wait(self, listening: psycopg.Connection, snapshot: str) -> None:
        unread = {f"{snapshot} {number}" for number in range(self.parts)}
        while unread and _is_running(self.owner) and (left := self.ends_at - monotonic()) > 0:
            for notification in listening.notifies(timeout=min(left, _BEAT), stop_after=1):
                unread.discard(notification.payload)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it runs, but belongs to another user
    return True
