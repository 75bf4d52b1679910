"""Sessions that call a server, blocking or awaiting."""

from io import BytesIO
from math import inf, isfinite
from typing import Any, TypeVar

import aiohttp

from duequeue.drive.steps import drive, drive_async
from duequeue.port.store import Operation
from duequeue.stores.http.address import ServerAddress
from duequeue.stores.http.answers import read_answer, without_answer
from duequeue.stores.http.calls import CALL_PATH, body_of
from duequeue.stores.http.connections import CONNECT_SECONDS, LONGEST_IDLE, Connections
from duequeue.stores.http.store import RemoteCall

T = TypeVar("T")

SENT_AT_ONCE = 1024 * 1024


class HttpSession:
    """Runs operations on connections that threads share."""

    def __init__(self, address: ServerAddress) -> None:
        self._address = address
        self._connections = Connections(address)

    def run(self, operation: Operation[T], seconds: float = inf, *, consumes: bool = False) -> T:
        """Run one operation, which is one request."""

        def perform(call: RemoteCall) -> Any:
            body = body_of(call, seconds, consumes=consumes)
            limit = seconds if isfinite(seconds) else None
            status, answer = self._connections.post(CALL_PATH, body, limit)
            return read_answer(status, answer, call.operation.result.decode, self._address.text)

        return drive(operation(), perform)

    def close(self) -> None:
        """Close the connections."""
        self._connections.close()


class AsyncHttpSession:
    """Runs operations in an event loop."""

    def __init__(self, address: ServerAddress) -> None:
        self._address = address
        self._client: aiohttp.ClientSession | None = None

    async def run(
        self, operation: Operation[T], seconds: float = inf, *, consumes: bool = False
    ) -> T:
        """Run one operation, which is one request."""

        async def perform(call: RemoteCall) -> Any:
            body = body_of(call, seconds, consumes=consumes)
            status, answer = await self._post(body, seconds if isfinite(seconds) else None)
            return read_answer(status, answer, call.operation.result.decode, self._address.text)

        return await drive_async(operation(), perform)

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()

    async def _post(self, body: bytes, seconds: float | None) -> tuple[int, bytes]:
        if self._client is None:
            self._client = _client(self._address)
        timeout = aiohttp.ClientTimeout(total=seconds, sock_connect=CONNECT_SECONDS)
        # A large body is sent in parts, so that it does not hold up the event loop.
        data = BytesIO(body) if len(body) > SENT_AT_ONCE else body
        try:
            async with self._client.post(
                self._address.text + CALL_PATH, data=data, timeout=timeout
            ) as answer:
                return answer.status, await answer.read()
        except (aiohttp.ClientError, OSError) as error:
            raise without_answer(error, self._address.text) from error


def _client(address: ServerAddress) -> aiohttp.ClientSession:
    connector = aiohttp.TCPConnector(
        limit=0, keepalive_timeout=LONGEST_IDLE, ssl=address.tls() or True
    )
    return aiohttp.ClientSession(
        connector=connector, headers=address.headers, cookie_jar=aiohttp.DummyCookieJar()
    )
