"""Locks by which the process that keeps a snapshot sees that readers are alive.

A connection in a transaction receives no notifications. So a reader holds an advisory lock while it
reads a part, and takes another one when it has read all of it. The keeper of the snapshot looks at
these locks at intervals, and needs no second connection for that.
"""

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from threading import Thread
from zlib import crc32

import psycopg

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
