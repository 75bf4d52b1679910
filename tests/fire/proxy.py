"""A network of our own between the workers and a server, which can be cut or swallow everything."""

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

T = TypeVar("T")

READ_BYTES = 65_536


class Proxy:
    """Passes bytes on in both directions, on a thread with an event loop of its own.

    A black hole keeps the bytes and the connections, as a network does that loses packets for a
    while. Later everything arrives, even from callers that have given up in the meantime.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._server = (parts.hostname or "", parts.port or 0)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._flows = asyncio.Event()
        self._flows.set()
        self._reachable = True
        self._writers: set[asyncio.StreamWriter] = set()
        self._listener = self._run(asyncio.start_server(self._serve, "127.0.0.1", 0))
        port = self._listener.sockets[0].getsockname()[1]
        login = parts.netloc.rpartition("@")[0]
        self.url = urlunsplit(parts._replace(netloc=f"{login}@127.0.0.1:{port}"))

    def through(self, url: str) -> str:
        """Return the URL of another database on the same server, by way of this network."""
        return urlunsplit(urlsplit(self.url)._replace(path=urlsplit(url).path))

    def cut(self) -> None:
        """Break every connection, and refuse new ones."""
        self._run(self._cut())

    def swallow(self) -> None:
        """Pass nothing on, and keep the connections open."""
        self._loop.call_soon_threadsafe(self._flows.clear)

    def restore(self) -> None:
        """Let everything through again."""
        self._reachable = True
        self._loop.call_soon_threadsafe(self._flows.set)

    def close(self) -> None:
        """Let go of every connection, and end the thread."""
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _cut(self) -> None:
        self._reachable = False
        for writer in list(self._writers):
            writer.transport.abort()

    async def _end(self) -> None:
        self._listener.close()
        self.restore()
        await self._cut()
        running = asyncio.all_tasks() - {asyncio.current_task()}
        for each in running:
            each.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._reachable:
            writer.transport.abort()
            return
        self._writers.add(writer)
        with suppress(OSError):
            await self._flows.wait()
            from_server, to_server = await asyncio.open_connection(*self._server)
            self._writers.add(to_server)
            try:
                await asyncio.gather(
                    self._pass_on(reader, to_server), self._pass_on(from_server, writer)
                )
            finally:
                self._writers.discard(to_server)
                to_server.transport.abort()
        self._writers.discard(writer)
        writer.transport.abort()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(READ_BYTES):
                await self._flows.wait()
                writer.write(data)
                await writer.drain()
        await self._flows.wait()
        with suppress(OSError):
            writer.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()
