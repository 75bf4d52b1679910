"""Lookups of names, on threads of their own.

A name server that does not answer holds its thread until the lookup is given up, and asyncio's own
threads are few. aiohttp starts at most one lookup per name at a time.
"""

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor

from aiohttp.abc import AbstractResolver, ResolveResult

# A thread starts when a lookup needs one, and then only waits for the name server.
THREADS = 512
# How long a lookup waits for one of the threads.
PATIENCE_SECONDS = 5.0


class NoThread(OSError):
    """A name was not looked up, because lookups of other names hang. This name is not to blame."""

    def __init__(self, host: str) -> None:
        self.reason = f"the name {host} was not looked up, because too many other lookups hang"
        super().__init__(self.reason)


class Lookups(AbstractResolver):
    """The resolver of the system, with enough threads for many lookups that hang."""

    def __init__(self, threads: int = THREADS, patience: float = PATIENCE_SECONDS) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="duequeue-lookup")
        self._free = asyncio.Semaphore(threads)
        self._patience = patience

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return all addresses of a name."""
        try:
            async with asyncio.timeout(self._patience):
                await self._free.acquire()
        except TimeoutError:
            raise NoThread(host) from None
        lookup = asyncio.get_running_loop().run_in_executor(
            self._threads,
            socket.getaddrinfo,
            host,
            port,
            family,
            socket.SOCK_STREAM,
            0,
            socket.AI_ADDRCONFIG,
        )
        lookup.add_done_callback(lambda _: self._free.release())
        found = await lookup
        return [
            ResolveResult(
                hostname=host,
                host=_with_zone(address),
                port=port,
                family=kind,
                proto=protocol,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for kind, _, protocol, _, address in found
        ]

    async def close(self) -> None:
        """Start no more lookups; those that hang end by themselves."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _with_zone(address: tuple[object, ...]) -> str:
    """Return the address, with the zone that a link-local one needs."""
    zone = address[3] if len(address) > 3 else 0  # noqa: PLR2004 - host, port, flow and zone
    return f"{address[0]}%{zone}" if zone else str(address[0])
