"""HTTPS: a connection counts from its beginning, and its handshake has to end soon.

uvicorn by itself learns of a connection only after the handshake, for which it waits a minute.
"""

import asyncio
import os
import socket
from contextlib import suppress
from typing import Any

from uvicorn.protocols.utils import get_remote_addr

from duequeue.server.certificate import Certificate
from duequeue.server.connections import CountedProtocol, address_of
from duequeue.server.problems import Problem


class SecuredProtocol(asyncio.Protocol):
    """Counts a connection, and begins its handshake, after which the protocol of HTTP has it.

    `start_tls` could come too late, because the event loop has begun to read by then. So the
    connection leaves its first transport before that has read anything.
    """

    http: type[CountedProtocol]
    certificate: Certificate
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
        with suppress(OSError):  # the client has gone, does not speak TLS, or is too slow
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: http,
                own,
                ssl=self.certificate.context,
                ssl_handshake_timeout=http.limits.handshake_seconds,
            )
        if http.transport is None:  # it has not learned of the connection
            self.http.open.leave(address)


def secured_by(certificate: Certificate, http: type[CountedProtocol]) -> type[SecuredProtocol]:
    """Return the protocol of HTTPS with this certificate."""
    shared = {"http": http, "certificate": certificate, "under_way": set()}
    return type("Secured", (SecuredProtocol,), shared)
