"""A process that keeps a snapshot, because Spark ends the planning process while others read.

It is a copy of the planner that outlives it and has none of its files open. A copy starts at once,
while a new interpreter takes a quarter of a second.

A connection in a transaction receives no notifications. So a reader holds an advisory lock while it
reads a part, and takes another one when it has read all of it. The keeper of the snapshot looks at
these locks at intervals, and needs no second connection for that.
"""

import gc
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from select import select
from threading import Thread
from time import monotonic, sleep
from typing import NamedTuple, NoReturn
from zlib import crc32

import psycopg

from duequeue.errors import StoreError
from duequeue.stores.sql.postgres.settings import PostgresSettings

Answer = Callable[[str], None]
Work = Callable[[Answer], None]

CAN_DETACH = hasattr(os, "fork")  # not on Windows
_STANDARD = range(3)
# In seconds. A lock that another thread held stays locked in the copy, which may then hang.
_PATIENCE = 60

# The keeper looks at this interval, in seconds, and sees every lock that is held for two of them.
BEAT = 0.5
_SEEN = 2 * BEAT

_LOCK = "SELECT pg_advisory_lock_shared(%s, %s)"
_LOCKED = """
    SELECT CAST(objid AS bigint) FROM pg_locks
    WHERE locktype = 'advisory' AND objsubid = 2 AND granted
        AND CAST(classid AS bigint) = %s
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""

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


def detach(work: Work) -> str:
    """Run work in a process of its own, and return the one answer that it gives.

    If the work fails before it answers, return the reason.
    """
    reading, writing = os.pipe()
    with os.fdopen(reading) as pipe:
        try:
            child = os.fork()
            if child == 0:
                _be_detached(work, writing)
        finally:
            os.close(writing)
        with suppress(ChildProcessError):  # if this process ignores the end of its children
            os.waitpid(child, 0)
        answers, _, _ = select([pipe], [], [], _PATIENCE)
        return pipe.read() if answers else f"its process did not answer within {_PATIENCE} s"


def _be_detached(work: Work, writing: int) -> NoReturn:
    try:
        _forget_the_planner(writing)
        os.setsid()  # so that it does not end with its process group
        if os.fork() == 0:  # a grandchild never becomes our zombie
            work(partial(_answer, writing))
    except Exception as error:  # noqa: BLE001 - the waiting process returns it
        with suppress(OSError):  # unless the work has answered already
            _answer(writing, str(error))
    finally:
        os._exit(0)


def _answer(writing: int, words: str) -> None:
    with os.fdopen(writing, "w") as pipe:
        pipe.write(words)


def _forget_the_planner(kept: int) -> None:
    """Close its files, reset its signal handlers, and never collect garbage that owns its files."""
    gc.disable()
    for ending in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(ending, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in _STANDARD:
        os.dup2(nothing, number)
    still_open = {int(each.name) for each in Path("/dev/fd").iterdir()}
    for number in still_open - {*_STANDARD, kept}:
        with suppress(OSError):  # one of them was open only to list the others
            os.close(number)


def lock_class(name: str) -> int:
    """Return the number under which everything of this name is locked."""
    return crc32(name.encode()) >> 1  # a positive integer of four bytes


def locked(connection: psycopg.Connection, snapshot: str) -> tuple[set[int], set[int]]:
    """Return the parts that are being read, and those that have just been read completely."""
    rows = connection.execute(_LOCKED, [lock_class(snapshot)]).fetchall()
    numbers = {number for (number,) in rows}
    reading = {number // 2 for number in numbers if number % 2 == 0}
    return reading, {number // 2 for number in numbers if number % 2}


@contextmanager
def seen_reading(connection: psycopg.Connection, snapshot: str, part: int) -> Iterator[None]:
    """Hold the lock of a reader, and close the connection once the keeper has seen it.

    A reader that has read its part leaves the closing to a thread. A reader that Spark cuts short,
    because it needs no more rows, waits itself, since nobody waits for the reader.
    """
    began = time.monotonic()
    try:
        connection.execute(_LOCK, [lock_class(snapshot), 2 * part])
        yield
        connection.execute(_LOCK, [lock_class(snapshot), 2 * part + 1])
    except GeneratorExit:
        time.sleep(max(0.0, began + _SEEN - time.monotonic()))
        connection.close()
        raise
    except BaseException:
        connection.close()
        raise
    Thread(target=_close_later, args=[connection], name="duequeue-snapshot", daemon=True).start()


def _close_later(connection: psycopg.Connection) -> None:
    with closing(connection), suppress(psycopg.Error):
        time.sleep(_SEEN)


class Readers:
    """Decides how long a snapshot is kept after the last moment at which a reader was alive.

    It is kept for all the seconds until somebody begins to read, and for a share of them while
    nobody reads between two parts. If every part was read, or if a reader was cut short, the query
    has ended. Then the snapshot is kept for a little longer, because a program may use the same
    DataFrame twice in a row, and because Spark may start a reader again.
    """

    END_SECONDS = 30.0
    IDLE_SHARE = 0.1

    def __init__(self, parts: int, seconds: float, now: float) -> None:
        self._unread = set(range(parts))
        self._begun: set[int] = set()
        self._seconds = seconds
        self._alive_at = now

    def need_it(self, reading: set[int], done: set[int], now: float) -> bool:
        """Return whether the snapshot is still needed, given which locks are held."""
        self._begun |= reading | done
        self._unread -= done
        if reading or done:
            self._alive_at = now
        return now < self._alive_at + self._patience

    @property
    def all_was_read(self) -> bool:
        """Whether every part was read at least once."""
        return not self._unread

    @property
    def _patience(self) -> float:
        if not self._begun:
            return self._seconds
        ended = self.all_was_read or self._begun & self._unread
        return min(self.END_SECONDS if ended else self._seconds, self._seconds * self.IDLE_SHARE)


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
