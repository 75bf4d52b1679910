"""Connections to SQLite files that are closed while the process forks.

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
from weakref import WeakSet

from duequeue.errors import QueueClosed

_forking = threading.Lock()
_connections: "WeakSet[FileConnection]" = WeakSet()
_halted: "list[FileConnection]" = []


class FileConnection:
    """A connection for one thread at a time, made when it is needed."""

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._closed = False
        with _forking:
            _connections.add(self)

    @contextmanager
    def in_use(self) -> Iterator[sqlite3.Connection]:
        """Lend the connection to the caller alone, for as long as the block lasts."""
        with self._lock:
            if self._closed:
                raise QueueClosed("the queue was closed while this call ran")
            if self._connection is None:
                self._connection = self._connect()
            yield self._connection

    def close(self) -> None:
        """Close it for good."""
        with self._lock:
            self._closed = True
            self._let_go()

    def halt(self) -> None:
        """Close it, and let nobody open it again until `go_on`."""
        self._lock.acquire()
        self._let_go()

    def go_on(self) -> None:
        """Let it be used again."""
        self._lock.release()

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
