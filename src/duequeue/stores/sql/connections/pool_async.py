"""The connections of one event loop to one database, which its awaiting queues share.

Its code runs on the event loop alone, so plain lists are enough, and a cancellation can strike only
where it awaits.
"""

import asyncio
from collections import deque
from functools import partial
from time import monotonic

from duequeue.errors import QueueClosed
from duequeue.port.store import LONGEST_CALL
from duequeue.process.shared import Shared
from duequeue.stores.sql.connections.pool import LONGEST_WAIT, IdleConnections
from duequeue.stores.sql.connections.watchdog import (
    PROBE_EVERY,
    PooledConnection,
    PooledServer,
    WatchedPlace,
)

Waiters = deque["asyncio.Future[WatchedPlace]"]


class AsyncPool(IdleConnections[PooledConnection]):
    """As many places for connections in use as `pool_size` says."""

    def __init__(self, server: PooledServer) -> None:
        super().__init__(server)
        self._loop = asyncio.get_running_loop()
        self._free: list[WatchedPlace] = []
        # This holds one place, for calls that poll, extend or settle; see `pool.py`.
        self._for_consumers: list[WatchedPlace] = []
        self._waiting: Waiters = deque()
        self._waiting_consumers: Waiters = deque()
        for number in range(self.size):
            self._hand_over(WatchedPlace(server, for_consumers=number == 0))

    async def take(self, seconds: float, *, consumes: bool) -> WatchedPlace:
        """Return a place for a call of some seconds, with a connection if one was idle."""
        now = monotonic()
        if self._free:
            place = self._free.pop()
        elif consumes and self._for_consumers:
            place = self._for_consumers.pop()
        else:
            place = await self._wait(seconds, consumes=consumes)
        place.seconds = seconds
        place.deadline = now + (seconds if seconds < LONGEST_CALL else PROBE_EVERY)
        place.probes = 0
        if self._idle:
            place.connection = self._idle.pop()
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
        self._hand_over(place)

    def leave(self) -> None:
        """Count one user fewer; when the last one leaves, the calls that wait fail."""
        super().leave()
        if not self._users:
            for waiter in (*self._waiting, *self._waiting_consumers):
                if not waiter.done():
                    waiter.set_exception(
                        QueueClosed("the queue was closed while this call waited for a connection")
                    )

    def _free_places(self) -> int:
        return len(self._free) + len(self._for_consumers)

    async def _wait(self, seconds: float, *, consumes: bool) -> WatchedPlace:
        waiters = self._waiting_consumers if consumes else self._waiting
        waiter: asyncio.Future[WatchedPlace] = self._loop.create_future()
        waiters.append(waiter)
        seconds = min(seconds, LONGEST_WAIT)
        try:
            async with asyncio.timeout(seconds):
                await waiter
        except BaseException as error:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self._hand_over(waiter.result())  # it came together with the cancellation
            if isinstance(error, TimeoutError):
                raise self._exhausted(seconds, consumes=consumes) from None
            raise
        return waiter.result()

    def _hand_over(self, place: WatchedPlace) -> None:
        """Give a place to the call that has waited longest for it, or keep it for the next."""
        if place.for_consumers:
            if not _serve(self._waiting_consumers, place):
                self._for_consumers.append(place)
        elif not _serve(self._waiting, place) and not _serve(self._waiting_consumers, place):
            self._free.append(place)


def _serve(waiters: Waiters, place: WatchedPlace) -> bool:
    """Give the place to the first call that still waits; return whether there was one."""
    while waiters:
        waiter = waiters.popleft()
        if not waiter.done():
            waiter.set_result(place)
            return True
    return False


_pools: Shared[AsyncPool] = Shared()


def shared_pool_async(server: PooledServer) -> AsyncPool:
    """Return the pool of the running event loop for this server.

    A pool holds on to its loop, so while there is a pool, no other loop has that id.
    """
    loop = asyncio.get_running_loop()
    return _pools.get((server, id(loop)), partial(AsyncPool, server))
