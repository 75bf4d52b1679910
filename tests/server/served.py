"""A real server in this process, on a thread of its own, and the clients that speak to it."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import uvloop

from duequeue.server import Service
from duequeue.server.running import DrainingServer, ServerSettings, listening_socket

PATIENCE = 20.0


class Served:
    """A service that listens on a port of 127.0.0.1."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listener = listening_socket("127.0.0.1", 0)
        self.port: int = self._listener.getsockname()[1]
        self._server = DrainingServer(service, ServerSettings(access_log=True))
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._ready.wait(PATIENCE), "the server did not start"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def connections(self) -> int:
        """How many connections clients have open."""
        return len(self._server.server_state.connections)

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
            await self._server._serve([self._listener])  # noqa: SLF001
        finally:
            await self.service.close()


@contextmanager
def served(service: Service) -> Iterator[Served]:
    """Serve for as long as the block lasts."""
    server = Served(service)
    try:
        yield server
    finally:
        server.stop()
