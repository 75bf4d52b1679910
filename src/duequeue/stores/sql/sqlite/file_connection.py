"""Connections to SQLite files, which notice a lost file and are closed while the process forks.

SQLite remembers which file locks its process holds, and a fork copies this memory but not the
locks. A child that opened the file beside a copied connection would work without locks, so other
processes would take it for gone and remove the log that it writes to. Moreover, a call that another
thread was making inside SQLite at that moment would never end in the child.
"""

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from pathlib import Path
from weakref import WeakSet

from duequeue.errors import QueueClosed, StoreBusy, StoreError
from duequeue.process.permits import Permit, Permits

# In seconds. While an exception that interrupted a call is handled, it may still hold the turn of
# that call, and the code that handles it may close the queue.
CLOSE_WITHIN = 5.0

_forking = threading.Lock()
_connections: "WeakSet[FileConnection]" = WeakSet()
_halted: "list[FileConnection]" = []


class DatabaseFile:
    """The file that a path led to when it was first opened."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self._opened: tuple[int, int] | None = None

    def check(self) -> None:
        """Raise if the path no longer leads to this file, because writes would be lost."""
        if self._opened is not None and self._identity() != self._opened:
            raise StoreError(
                f"SQLite at {self.path}: the file was deleted, moved or replaced after the queue "
                "was opened; put it back, or close the queue and open it again"
            )

    def remember(self) -> None:
        """Remember which file was opened."""
        self._opened = self._opened or self._identity()

    def _identity(self) -> tuple[int, int] | None:
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino


class FileConnection:
    """A connection for one thread at a time, made when it is needed."""

    def __init__(self, file: DatabaseFile, connect: Callable[[], sqlite3.Connection]) -> None:
        self._file = file
        self._connect = connect
        self._permits = Permits(1)
        self._halted: Permit | None = None
        self._connection: sqlite3.Connection | None = None
        self._closed = False
        with _forking:
            _connections.add(self)

    @contextmanager
    def in_use(self, seconds: float = inf) -> Iterator[sqlite3.Connection]:
        """Lend the connection to the caller alone, for as long as the block lasts."""
        permit = self._permits.take(seconds)
        if permit is None:
            raise StoreBusy(
                f"SQLite at {self._file.path}: other calls of this process kept it busy for "
                f"{seconds:.1f} s"
            )
        try:
            yield self._ready()
        finally:
            if self._closed:
                self._let_go()
            permit.give_back()

    def close(self) -> None:
        """Close it for good; a call that is still in progress after a while closes it itself."""
        self._closed = True
        permit = self._permits.take(CLOSE_WITHIN)
        if permit is not None:
            self._let_go()
            permit.give_back()

    def __del__(self) -> None:
        self._let_go()  # if an interrupted call kept its permit for longer than `close` waits

    def halt(self) -> None:
        """Close it, and let nobody open it again until `go_on`."""
        self._halted = self._permits.take(inf)
        self._let_go()

    def go_on(self) -> None:
        """Let it be used again."""
        halted, self._halted = self._halted, None
        if halted is not None:
            halted.give_back()

    def _ready(self) -> sqlite3.Connection:
        if self._closed:
            raise QueueClosed("the queue was closed while this call ran")
        self._file.check()
        if self._connection is None:
            self._connection = self._connect()
            self._file.remember()
        if self._connection.in_transaction:  # an interruption left it behind
            self._connection.rollback()
        return self._connection

    def _let_go(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _before_a_fork() -> None:
    _forking.acquire()
    for each in list(_connections):
        each.halt()
        _halted.append(each)


def _after_a_fork() -> None:
    while _halted:
        _halted.pop().go_on()
    _forking.release()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(
        before=_before_a_fork, after_in_parent=_after_a_fork, after_in_child=_after_a_fork
    )
