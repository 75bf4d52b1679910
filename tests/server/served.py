"""A real server in this process, on a thread of its own, and the clients that speak to it."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

import httpx
import uvloop

from duequeue import SystemClock
from duequeue.parts import QueueSettings
from duequeue.server import Limits, Service
from duequeue.server.access import Access
from duequeue.server.certificate import Certificate
from duequeue.server.running import DrainingServer, ServerSettings, listening_socket
from duequeue.server.tokens import TokenFile

PATIENCE = 20.0
REQUESTS = "duequeue_http_request_duration_seconds_count"


class Served:
    """A service that listens on a port of 127.0.0.1."""

    def __init__(self, service: Service, certificate: Certificate | None = None) -> None:
        self.service = service
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listener = listening_socket("127.0.0.1", 0)
        self.port: int = self._listener.getsockname()[1]
        self._settings = ServerSettings(certificate=certificate, access_log=True)
        self._server = DrainingServer(service, self._settings)
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._ready.wait(PATIENCE), "the server did not start"

    @property
    def url(self) -> str:
        return self._settings.url(self.port)

    @property
    def connections(self) -> int:
        """How many connections clients have open."""
        return len(self._server.server_state.connections)

    @property
    def pipelined(self) -> int:
        """How many requests wait until another one on their connection is answered."""
        connections: set[Any] = {*self._server.server_state.connections}
        return sum(len(each.pipeline) for each in connections)

    def requests(self, route: str) -> int:
        """How many requests whose route has this text were answered, as the metrics say."""
        lines = self.call(lambda: list(self.service.meter.lines()))
        counts = [each for each in lines if each.startswith(REQUESTS) and route in each]
        return sum(int(each.rsplit(" ", 1)[1]) for each in counts)

    def stop(self) -> None:
        """Stop as after SIGTERM, and wait for the end."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._server.stop)
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive(), "the server did not stop"

    def call(self, function: Any, *arguments: Any) -> Any:
        """Call something in the server's event loop."""

        async def awaited() -> Any:
            result = function(*arguments)
            return await result if asyncio.iscoroutine(result) else result

        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(awaited(), self._loop).result(PATIENCE)

    def client(self, token: str | None = None, **options: Any) -> httpx.Client:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return httpx.Client(
            base_url=self.url, headers=headers, timeout=PATIENCE, trust_env=False, **options
        )

    def _run(self) -> None:
        with self._listener, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            self._loop = runner.get_loop()
            runner.run(self._serve())

    async def _serve(self) -> None:
        await self.service.start()
        self._ready.set()
        try:
            # Signals come to the main thread only, so this is less than `run_until_stopped`.
            await self._server.serve([self._listener])
        finally:
            await self.service.close()


class MovableTime:
    """The time since some instant, which goes on by itself and jumps when a test says so."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return monotonic() + self.ahead


def guarded_service(url: str, tokens: TokenFile, limits: Limits | None = None) -> Service:
    """Return a service that needs tokens, which it reads from a file with a time of its own."""
    settings = QueueSettings(url, SystemClock())
    return Service(settings, Access(tokens, required=True), limits or Limits())


@contextmanager
def served(service: Service, certificate: Certificate | None = None) -> Iterator[Served]:
    """Serve for as long as the block lasts."""
    server = Served(service, certificate)
    try:
        yield server
    finally:
        server.stop()
