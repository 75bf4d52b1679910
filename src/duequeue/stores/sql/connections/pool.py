"""The connections of one process to one database, which its blocking queues share.

No interrupt, such as Ctrl-C or the exception of a signal handler, leaves the pool locked or short
of a connection. The call that uses a place of the pool has the only reference to it. So if an
exception is raised between taking a place and the `try` that gives it back, the place becomes
garbage, and the next call that finds the pool exhausted replaces it.

Awaiting queues keep and close idle connections in the same way; see `pool_async.py`.
"""

import threading
from abc import ABC, abstractmethod
from collections import deque
from contextlib import suppress
from functools import partial
from math import inf
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Generic, TypeVar
from weakref import ref

from duequeue.errors import QueueClosed, StoreBusy
from duequeue.port.store import LONGEST_CALL
from duequeue.process.shared import PoolUse, Shared, note_pool
from duequeue.stores.sql.connections.watchdog import (
    PROBE_EVERY,
    PooledConnection,
    PooledServer,
    WatchedPlace,
)

C = TypeVar("C", bound=PooledConnection)

# In seconds. A connection that was not used for this long is closed.
CLOSE_IDLE_AFTER = 600.0
TIDY_EVERY = 60.0
# How long a long operation waits for a connection, in seconds.
LONGEST_WAIT = 10.0

# How soon, in seconds, a waiting call notices lost places, signals and the end of the pool.
NOTICE_EVERY = 0.1


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


class Pool(IdleConnections[PooledConnection]):
    """As many places for connections in use as `pool_size` says.

    Only locks and queues that are written in C guard it, because no interrupt can occur inside
    them.
    """

    def __init__(self, server: PooledServer) -> None:
        super().__init__(server)
        self._replacing = threading.Lock()
        self._free: SimpleQueue[WatchedPlace] = SimpleQueue()
        # This holds one place, for calls that poll, extend or settle. Offers may wait for somebody
        # else's lock on all other places, and messages must still be consumed.
        self._for_consumers: SimpleQueue[WatchedPlace] = SimpleQueue()
        self._places: list[ref[WatchedPlace] | None] = [None] * self.size
        self._replace_lost()

    def take(self, seconds: float, *, consumes: bool) -> WatchedPlace:
        """Return a place for a call of some seconds, with a connection if one was idle."""
        now = monotonic()
        try:
            place = self._free.get_nowait()
        except Empty:
            place = self._wait(now, seconds, consumes=consumes)
        place.seconds = seconds
        place.deadline = now + (seconds if seconds < LONGEST_CALL else PROBE_EVERY)
        place.probes = 0
        try:
            place.connection = self._idle.pop()
        except IndexError:
            place.connection = None  # the caller connects
        if place.watchdog.sleeps:
            place.watchdog.wake()
        return place

    def give(self, place: WatchedPlace, *, reusable: bool) -> None:
        """Give a place back; its connection is kept if it was not left in the middle of a call."""
        with place.lock:  # from here on, the watchdog cannot cut it off
            connection, place.connection, place.deadline = place.connection, None, None
        if connection is not None:
            if place.is_cut or not reusable:
                self._discard(place, connection)
            else:
                connection.idle_since = monotonic()
                self._idle.append(connection)
                if connection.idle_since > self._tidy_at or not self._users:
                    self._tidy()
        (self._for_consumers if place.for_consumers else self._free).put(place)

    def _free_places(self) -> int:
        return self._free.qsize() + self._for_consumers.qsize()

    def _wait(self, began: float, seconds: float, *, consumes: bool) -> WatchedPlace:
        gives_up_at = began + min(seconds, LONGEST_WAIT)
        while True:
            if not self._users:
                raise QueueClosed("the queue was closed while this call waited for a connection")
            self._replace_lost()
            left = max(gives_up_at - monotonic(), 0.0)
            try:
                queue = self._for_consumers if consumes else self._free
                return queue.get(timeout=min(left, NOTICE_EVERY))
            except Empty:
                if consumes and not self._free.empty():
                    with suppress(Empty):
                        return self._free.get_nowait()
                if left == 0.0:
                    waited = monotonic() - began
                    raise self._exhausted(waited, consumes=consumes) from None

    def _replace_lost(self) -> None:
        with self._replacing:
            # A loop in this block itself could leave it locked. Since Python 3.12, an interrupt
            # between two turns of a loop may skip the end of the `with` around it.
            self._replace_each_lost()

    def _replace_each_lost(self) -> None:
        for number, each in enumerate(self._places):
            if each is None or each() is None:
                place = WatchedPlace(self.server, for_consumers=number == 0)
                self._places[number] = ref(place)
                (self._for_consumers if place.for_consumers else self._free).put(place)


_pools: Shared[Pool] = Shared()


def shared_pool(server: PooledServer) -> Pool:
    """Return the pool of this process for this server."""
    return _pools.get(server, partial(Pool, server))
