"""A light client for HTTP, so that the load takes little from the server that is measured."""

import asyncio
import re
from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec

from duequeue.process.own_token import find_own_token

LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)


class HttpConnection(asyncio.Protocol):
    """One connection, which sends a request when the one before is answered."""

    def __init__(self, token: str | None = None) -> None:
        self._token = "" if token is None else f"Authorization: Bearer {token}\r\n"
        self._transport: Any = None
        self._received = b""
        self._answer: asyncio.Future[bytes] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Complete the answer."""
        self._received += data
        head, end, body = self._received.partition(b"\r\n\r\n")
        length = LENGTH.search(head)
        if self._answer is None or not end or length is None or len(body) < int(length[1]):
            return
        self._received = b""
        if head.startswith(b"HTTP/1.1 200"):
            self._answer.set_result(body)
        else:
            self._answer.set_exception(RuntimeError(body.decode()))

    async def post(self, path: str, body: bytes) -> bytes:
        """Send a request, and return the body of the answer."""
        kind = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        return await self._ask(f"POST {path}", kind, body)

    async def post_json(self, path: str, value: object) -> Any:
        """Do the same in JSON."""
        return msgspec.json.decode(await self.post(path, msgspec.json.encode(value)))

    async def get_json(self, path: str) -> Any:
        """Send a GET request, and return the JSON of the answer."""
        return msgspec.json.decode(await self._ask(f"GET {path}"))

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()

    async def _ask(self, what: str, headers: str = "", body: bytes = b"") -> bytes:
        self._answer = asyncio.get_running_loop().create_future()
        head = f"{what} HTTP/1.1\r\nHost: 127.0.0.1\r\n{self._token}{headers}\r\n"
        self._transport.write(head.encode() + body)
        return await self._answer


async def connected(port: int, connections: int) -> Sequence[HttpConnection]:
    """Open connections to a server of this machine."""
    loop = asyncio.get_running_loop()
    make = partial(HttpConnection, find_own_token("127.0.0.1", port))
    made = [await loop.create_connection(make, "127.0.0.1", port) for _ in range(connections)]
    return [protocol for _, protocol in made]
