"""Idle connections, which both pools keep and close in the same way."""

import threading
from abc import ABC, abstractmethod
from collections import deque
from math import inf
from time import monotonic
from typing import Generic, TypeVar

from duequeue.errors import StoreBusy
from duequeue.process.pools import PoolUse, note_pool
from duequeue.stores.sql.pooling.server import PooledConnection, PooledServer
from duequeue.stores.sql.pooling.watchdog import WatchedPlace

C = TypeVar("C", bound=PooledConnection)

# In seconds. A connection that was not used for this long is closed.
CLOSE_IDLE_AFTER = 600.0
TIDY_EVERY = 60.0
# How long a long operation waits for a connection, in seconds.
LONGEST_WAIT = 10.0


class IdleConnections(ABC, Generic[C]):
    """The idle connections of a pool, which exist for as long as the pool has users.

    The one that was used last is used next, so that the others may grow old and be closed.
    """

    def __init__(self, server: PooledServer) -> None:
        self.server = server
        # One place stays for consumers, even if offers never give the others back.
        self.size = max(server.pool_size, 2)
        self._idle: deque[C] = deque()
        self._users = 0
        self._counting = threading.Lock()
        self._tidy_at = monotonic() + TIDY_EVERY
        note_pool(self)

    @property
    def use(self) -> PoolUse | None:
        """How many of the places are taken."""
        free = self._free_places()
        return PoolUse(str(self.server), self.size, self.size - free) if self._users else None

    @abstractmethod
    def _free_places(self) -> int:
        """Return how many places nobody uses."""

    def join(self) -> None:
        """Count one more user."""
        with self._counting:
            self._users += 1

    def leave(self) -> None:
        """Count one user fewer, and close the idle connections after the last one."""
        with self._counting:
            self._users -= 1
        if not self._users:
            self._close_idle()

    def _tidy(self) -> None:
        """Close the connections that were not used for long, or all if the pool has no users."""
        now = monotonic()
        self._tidy_at = now + TIDY_EVERY
        self._close_idle(now - CLOSE_IDLE_AFTER if self._users else inf)

    def _discard(self, place: WatchedPlace, connection: C) -> None:
        """Close a connection that cannot be used again, and the idle ones too if it was lost."""
        if place.is_cut or self.server.is_lost(connection):
            self._close_idle()
        place.is_cut = False
        self.server.finish(connection)

    def _close_idle(self, unless_used_since: float = inf) -> None:
        while self._idle:
            try:
                oldest = self._idle.popleft()
            except IndexError:  # another thread took it
                return
            if oldest.idle_since > unless_used_since:
                self._idle.appendleft(oldest)
                return
            self.server.finish(oldest)

    def _exhausted(self, seconds: float, *, consumes: bool) -> StoreBusy:
        kept = "" if consumes else " (one more is kept for polling, extending and settling)"
        return StoreBusy(
            f"{self.server}: waited {seconds:.3g} s for a connection, "
            f"but other calls use all {self.size - (not consumes)}{kept}; "
            "a larger pool_size in the url allows more"
        )
