"""HTTPS: a connection counts from its beginning, and its handshake has to end soon.

uvicorn by itself learns of a connection only after the handshake, for which it waits a minute. TLS
takes memory for each handshake, so it gets a connection only after a whole first message, and only
some at a time. See decision 68.
"""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any
from weakref import WeakValueDictionary

from uvicorn.protocols.utils import get_remote_addr

from duequeue.server.certificate import Certificate
from duequeue.server.client_hello import hello_from
from duequeue.server.connections import CountedProtocol, address_of
from duequeue.server.limits import Limits
from duequeue.server.problems import Problem

# The client has this long to take its leave, which tells it that the answer was complete.
GOODBYE_SECONDS = 1.0
# A handshake takes one or two round trips, so those who only hold places lose them soon.
HURRIED_SECONDS = 1.0


class _Line(asyncio.Semaphore):
    """The places of one address; those who have one must hurry up when the last one is taken."""

    def __init__(self, places: int) -> None:
        super().__init__(places)
        self._patient: set[asyncio.Timeout] = set()

    @asynccontextmanager
    async def place(self, limit: asyncio.Timeout) -> AsyncIterator[None]:
        """Wait for a place, and keep it until the block ends."""
        async with self:
            self._patient.add(limit)
            if self.locked():
                self._hurry()
            try:
                yield
            finally:
                self._patient.discard(limit)

    def _hurry(self) -> None:
        soon = asyncio.get_running_loop().time() + HURRIED_SECONDS
        for limit in self._patient:
            if not limit.expired():
                limit.reschedule(min(limit.when() or soon, soon))
        self._patient.clear()


class Places:
    """Lets a number of handshakes go on at a time, not all of them from one address."""

    def __init__(self, limits: Limits) -> None:
        self._of_one = limits.handshakes_per_address
        self._all = asyncio.Semaphore(limits.handshakes)
        self._turn = asyncio.Lock()
        self._by_address: WeakValueDictionary[str, _Line] = WeakValueDictionary()

    @asynccontextmanager
    async def place(self, address: str, limit: asyncio.Timeout) -> AsyncIterator[None]:
        """Wait for a place, and keep it until the block ends, or until its time is over."""
        line = self._by_address.setdefault(address, _Line(self._of_one))
        async with line.place(limit), self._all:
            async with self._turn:  # one for each round of the loop, which serves others in between
                await asyncio.sleep(0)
            yield


class SecuredProtocol(asyncio.Protocol):
    """Counts a connection, and begins its handshake, after which the protocol of HTTP has it.

    `start_tls` could come too late, because the event loop has begun to read by then. So the
    connection leaves its first transport before that has read anything.
    """

    http: type[CountedProtocol]
    certificate: Certificate
    places: Places
    under_way: set[asyncio.Task[None]]

    def __init__(self, **options: Any) -> None:
        self._options = options

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin the handshake, or close at once if there are too many connections.

        A client could read an answer only after a handshake.
        """
        address = address_of(get_remote_addr(transport))
        self.http.open.enter(address)
        try:
            self.http.open.check(address)
            own = socket.socket(fileno=os.dup(transport.get_extra_info("socket").fileno()))
        except (Problem, OSError):
            self.http.open.leave(address)
        else:
            task = asyncio.create_task(self._secure(own, address))
            self.under_way.add(task)
            task.add_done_callback(self.under_way.discard)
        transport.abort()

    async def _secure(self, own: socket.socket, address: str) -> None:
        http = self.http(**self._options)
        http.counted_as = address
        try:
            with suppress(OSError):  # the client has gone, does not speak TLS, or is too slow
                async with asyncio.timeout(http.limits.handshake_seconds) as limit:
                    if own.family != socket.AF_UNIX:  # it would not wait for all of a message
                        await hello_from(own)
                    async with self.places.place(address, limit):
                        await self._shake_hands(http, own)
        finally:
            if http.transport is None:  # it has not learned of the connection
                own.close()
                self.http.open.leave(address)

    async def _shake_hands(self, http: CountedProtocol, own: socket.socket) -> None:
        await asyncio.get_running_loop().connect_accepted_socket(
            lambda: http,
            own,
            ssl=self.certificate.context,
            ssl_handshake_timeout=http.limits.handshake_seconds,
            ssl_shutdown_timeout=GOODBYE_SECONDS,
        )


def secured_by(certificate: Certificate, http: type[CountedProtocol]) -> type[SecuredProtocol]:
    """Return the protocol of HTTPS with this certificate."""
    shared = {
        "http": http,
        "certificate": certificate,
        "places": Places(http.limits),
        "under_way": set(),
    }
    return type("Secured", (SecuredProtocol,), shared)
