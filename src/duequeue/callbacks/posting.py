"""One POST to an endpoint, which ends in time whatever the receiver does."""

import asyncio
import io
import ssl
from collections.abc import Mapping
from datetime import timedelta
from functools import lru_cache
from types import TracebackType
from typing import Self

import aiohttp
from aiohttp.abc import AbstractResolver
from yarl import URL

from duequeue.callbacks.addresses import Lookups, NoThread
from duequeue.callbacks.answer import CallAnswer
from duequeue.callbacks.failures import reason_for
from duequeue.callbacks.guard import Guard
from duequeue.errors import InvalidArgument
from duequeue.instants import timeout_millis, words_for

MOST_BYTES = 64 * 1024

# Most receivers close idle connections after two to five seconds. A call on a connection that is
# being closed fails, so we close ours first.
IDLE_SECONDS = 1.5
# How long an address of a name is used again, for each of this many names.
NAME_SECONDS = 30
MOST_NAMES = 10_000
LARGE_BODY = 2**20
USER_AGENT = "DueQueue"

# One timeout around the whole call replaces those of aiohttp.
_NO_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=None)


class CallFailed(Exception):
    """A callback got no complete answer; `reason` says why.

    `blames_endpoint` is False if the fault is on our side.
    """

    def __init__(self, reason: str, *, blames_endpoint: bool = True) -> None:
        super().__init__(reason)
        self.reason = reason
        self.blames_endpoint = blames_endpoint


class Poster:
    """Posts callbacks from one event loop, in which it must be made.

    It opens any number of connections, so the caller limits how many calls run at a time. It
    follows no redirects, keeps no cookies, repeats no calls and never unpacks a compressed answer.

    Behind a proxy, the proxy looks up names and connects. The guard then checks only the URL: its
    scheme, and its host if that is an address. The proxy has to check the rest.
    """

    def __init__(
        self,
        guard: Guard | None = None,
        *,
        proxy: str | None = None,
        tls: ssl.SSLContext | None = None,
        resolver: AbstractResolver | None = None,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._guard = Guard() if guard is None else guard
        self._most_bytes = most_bytes
        self._checked = lru_cache(maxsize=4096)(self._guard.checked_url)
        self._resolver = Lookups() if resolver is None else resolver
        proxy_url = None if proxy is None else _read_proxy(proxy)
        connector = aiohttp.TCPConnector(
            limit=0,
            ssl=True if tls is None else tls,
            resolver=self._resolver,
            ttl_dns_cache=NAME_SECONDS,
            dns_cache_max_size=MOST_NAMES,
            keepalive_timeout=IDLE_SECONDS,
            socket_factory=self._guard.open_socket if proxy_url is None else None,
        )
        self._client = aiohttp.ClientSession(
            connector=connector,
            proxy=proxy_url,
            timeout=_NO_TIMEOUT,
            headers={"User-Agent": USER_AGENT, "Accept-Encoding": "identity"},
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections; calls that still run fail."""
        await self._client.close()
        await self._resolver.close()

    async def post(
        self, url: str, body: bytes, headers: Mapping[str, str], timeout: timedelta | float
    ) -> CallAnswer:
        """Post a body and return the answer, whatever its status, or raise CallFailed.

        The timeout is for everything: looking up the name, connecting, sending, and reading the
        answer to its end or to the limit of bytes.
        """
        progress = _Progress()
        try:
            target = self._checked(url)
            async with asyncio.timeout(timeout_millis(timeout) / 1000):
                return await self._post(target, body, headers, progress)
        except TimeoutError:
            span = timeout if isinstance(timeout, timedelta) else timedelta(seconds=timeout)
            raise CallFailed(f"{progress.missing} within {words_for(span)}") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            is_ours = isinstance(getattr(error, "os_error", None), NoThread)
            raise CallFailed(reason_for(error), blames_endpoint=not is_ours) from error

    async def _post(
        self, url: URL, body: bytes, headers: Mapping[str, str], progress: "_Progress"
    ) -> CallAnswer:
        # aiohttp sends large bodies from a file piece by piece, and warns about large bytes.
        data = body if len(body) < LARGE_BODY else io.BytesIO(body)
        async with self._client.post(
            url, data=data, headers=headers, allow_redirects=False
        ) as response:
            progress.missing = "the answer did not end"
            received = await self._read(response.content)
            is_complete = len(received) <= self._most_bytes
            if not is_complete:
                response.close()
            return CallAnswer(
                response.status,
                {name.lower(): value for name, value in response.headers.items()},
                received[: self._most_bytes],
                is_complete,
            )

    async def _read(self, stream: aiohttp.StreamReader) -> bytes:
        """Read a body to its end, or to one byte beyond the limit."""
        received = await stream.readany()
        while len(received) <= self._most_bytes and not stream.at_eof():
            received += await stream.readany()
        return received


class _Progress:
    """What a call is still waiting for."""

    __slots__ = ("missing",)

    def __init__(self) -> None:
        self.missing = "no answer"


def _read_proxy(text: str) -> str:
    """Return the URL of a proxy; no error repeats it, because it may hold a password."""
    try:
        parts = URL(text)
    except ValueError:
        parts = URL()
    if parts.scheme not in {"http", "https"} or not parts.host:
        raise InvalidArgument("proxy", "must be a URL such as http://proxy.example.com:3128")
    return text
