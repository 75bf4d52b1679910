"""Runs the service until a signal ends it: first everybody who waits is woken, then it stops.

In between, it may go on for a while, so that load balancers notice before connections are refused.
uvicorn by itself would wait for open long polls before it informs the app that it has to stop.
"""

import asyncio
import errno
import logging
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import uvicorn
import uvloop

from duequeue.defaults import HOST, PORT
from duequeue.errors import InvalidArgument
from duequeue.process.stop_signals import answered_in_the_loop_by
from duequeue.server.app import Service
from duequeue.server.certificate import Certificate
from duequeue.server.handshakes import secured_by
from duequeue.server.open_files import OpenFiles
from duequeue.server.slow_clients import protocol_with

# A proxy in front should close idle connections first, and usually does so after a minute.
KEEP_ALIVE_SECONDS = 75
GRACE_SECONDS = 10
STOPPING = "the server is not ready any more, and closes in %g s; a second signal ends it at once"
_PLACES = {
    errno.EADDRINUSE: ("port", "stop the program that listens there, or choose another port"),
    errno.EACCES: ("port", "choose a port from 1024 on"),
}

logger = logging.getLogger("duequeue.server")


@dataclass(frozen=True)
class ServerSettings:
    """Where to listen, with which certificate, whether to log requests, and how long to drain."""

    host: str = HOST
    port: int = PORT
    certificate: Certificate | None = None
    access_log: bool = False
    drain: timedelta = timedelta(0)

    def url(self, port: int) -> str:
        """Return the address that clients use."""
        scheme = "http" if self.certificate is None else "https"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}:{port}"


class DrainingServer(uvicorn.Server):
    """A server that wakes everybody who waits as soon as it has to stop."""

    def __init__(self, service: Service, settings: ServerSettings) -> None:
        super().__init__(_config(service, settings))
        self._certificate = settings.certificate
        self._service = service
        self._drain_seconds = settings.drain.total_seconds()
        self._files = OpenFiles()

    async def run_until_stopped(
        self, listener: socket.socket, on_listening: Callable[[], None]
    ) -> None:
        """Serve until SIGTERM or SIGINT; a second signal ends open requests and callbacks too."""
        try:
            await self._service.start()
        except BaseException:
            await self._service.close()
            raise
        with answered_in_the_loop_by(self.stop), self._reading_again_on_hangup():
            try:
                on_listening()
                await self._serve([listener])
            finally:
                await self._service.close()

    async def on_tick(self, counter: int) -> bool:
        """Look, ten times a second, whether the process can open files."""
        self._files.look()
        return await super().on_tick(counter)

    @contextmanager
    def _reading_again_on_hangup(self) -> Iterator[None]:
        """Read the certificate again on SIGHUP, which without one ends the server as ever."""
        if self._certificate is None:
            yield
            return
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGHUP, self._certificate.read_again)
        try:
            yield
        finally:
            loop.remove_signal_handler(signal.SIGHUP)

    def stop(self) -> None:
        """Be no longer ready, and close after the time to drain; if called again, close at once."""
        if self._service.live.draining:
            self.force_exit = True
            self._service.hurry()
            self._close()
            return
        self._service.live.drain()
        if self._drain_seconds:
            logger.info(STOPPING, self._drain_seconds)
            asyncio.get_running_loop().call_later(self._drain_seconds, self._close)
        else:
            self._close()

    def _close(self) -> None:
        """Let requests in flight end, and accept no more."""
        self.should_exit = True
        self._service.live.close()


def serve(
    service: Service,
    settings: ServerSettings,
    listener: socket.socket,
    on_listening: Callable[[], None],
) -> None:
    """Serve until a signal ends it; call `on_listening` when it is ready."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        server = DrainingServer(service, settings)
        runner.run(server.run_until_stopped(listener, on_listening))


def listening_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address; connections wait until they are accepted."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise _refused_place(error, host, port) from error


def _refused_place(error: OSError, host: str, port: int) -> InvalidArgument:
    """Return the error about the argument that is to blame."""
    name, advice = _PLACES.get(error.errno or 0, ("host", "name an address of this machine"))
    words = (error.strerror or str(error)).partition(" (")[0]  # the rest repeats the place
    return InvalidArgument(name, text=f"{name}: cannot listen at {host}:{port}: {words}; {advice}")


def _config(service: Service, settings: ServerSettings) -> uvicorn.Config:
    certificate = settings.certificate
    http = protocol_with(service.limits)
    return uvicorn.Config(
        service,
        http=http if certificate is None else secured_by(certificate, http),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=settings.access_log,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
