"""A process that keeps a snapshot, because Spark ends the planning process while others read."""

import os
import socket
from contextlib import closing
from time import monotonic, sleep
from typing import NamedTuple

import psycopg

from duequeue.errors import StoreError
from duequeue.stores.sql.postgres.bulk.detached import Answer, detach
from duequeue.stores.sql.postgres.bulk.snapshot_locks import BEAT, Readers, lock_class, locked
from duequeue.stores.sql.postgres.settings import PostgresSettings

BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
# How many snapshots of one database that are not read yet a driver keeps at a time, each with one
# connection.
MOST_SNAPSHOTS = 4
APPLICATION_NAME = "duequeue snapshot"
# The names of snapshots are only unique until the server is started again.
_EXPORT = "SELECT pg_export_snapshot(), CAST(pg_postmaster_start_time() AS text)"
_TAKEN = "taken: "
_FULL = "full"
# The list is read only up to the first number that is free.
_TAKE_NUMBER = f"""
    SELECT number FROM generate_series(1, {MOST_SNAPSHOTS}) AS number
    WHERE pg_try_advisory_lock(%s, number) LIMIT 1
"""  # noqa: S608 - the number is ours
# Not every version of PostgreSQL has all of these settings.
_BE_PATIENT = """
    SELECT set_config(name, '0', false) FROM pg_settings
    WHERE name IN (
        'idle_in_transaction_session_timeout', 'idle_session_timeout', 'transaction_timeout'
    )
"""


def hold(settings: PostgresSettings, parts: int, seconds: float) -> str | None:
    """Take a snapshot, and keep it for as long as its readers need it.

    Return None if this driver already keeps as many snapshots as it may.
    """
    holder = _Holder(settings, parts, seconds, owner=os.getppid())
    try:
        answer = detach(holder.run)
    except OSError as error:  # out of processes or file descriptors
        answer = str(error)
    if answer == _FULL:
        return None
    if not answer.startswith(_TAKEN):
        reason = settings.address.clean(answer or "its process ended")
        raise StoreError(f"no snapshot could be kept: {reason}")
    return answer.removeprefix(_TAKEN)


class _Holder(NamedTuple):
    settings: PostgresSettings
    parts: int
    seconds: float
    owner: int  # the parent process of Spark's workers, which themselves come and go

    def run(self, answer: Answer) -> None:
        with closing(self._connect()) as connection:
            driver = lock_class(f"{socket.gethostname()} {self.owner}")
            taken = connection.execute(_TAKE_NUMBER, [driver]).fetchall()
            if not taken:
                answer(_FULL)
                return
            connection.execute(_BE_PATIENT)
            connection.execute(BEGIN)
            ((name, server_began),) = connection.execute(_EXPORT).fetchall()
            snapshot = f"{name} {server_began}"
            answer(_TAKEN + snapshot)
            self._wait(connection, snapshot, (driver, taken[0][0]))

    def _connect(self) -> psycopg.Connection:
        arguments = {
            **self.settings.connection_arguments,
            "application_name": APPLICATION_NAME,
        }
        return psycopg.connect(self.settings.conninfo, **arguments)

    def _wait(self, connection: psycopg.Connection, snapshot: str, number: tuple[int, int]) -> None:
        readers, has_number = Readers(self.parts, self.seconds, monotonic()), True
        while _is_running(self.owner):
            reading, done = locked(connection, snapshot)
            if not readers.need_it(reading, done, monotonic()):
                return
            if has_number and readers.all_was_read:  # the next read need not wait for our end
                connection.execute("SELECT pg_advisory_unlock(%s, %s)", number)
                has_number = False
            sleep(min(BEAT, self.seconds))


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it runs, but belongs to another user
    return True
