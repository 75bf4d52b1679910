"""Sessions that call a server, blocking or awaiting."""

from datetime import UTC, datetime
from math import inf, isfinite
from typing import Any, TypeVar

from msgspec import Raw

from duequeue.drive.steps import drive, drive_async
from duequeue.instants import to_millis
from duequeue.port.remote import Call, encode
from duequeue.port.store import Operation
from duequeue.stores.http.address import ServerAddress
from duequeue.stores.http.answers import read_answer
from duequeue.stores.http.connections import shared_connections
from duequeue.stores.http.connections_async import shared_client
from duequeue.stores.http.store import RemoteCall

CALL_PATH = "/v1/port:call"
WAIT_PATH = "/v1/port:wait"

T = TypeVar("T")


def body_of(call: RemoteCall, seconds: float, *, consumes: bool) -> bytes:
    """Return the body of a call that may take this many seconds."""
    return encode(
        Call(
            call.name,
            Raw(encode(call.arguments)),
            *call.opened,
            seconds=seconds if isfinite(seconds) else None,
            consumes=consumes,
            sent_at=to_millis(datetime.now(UTC)),
        )
    )


class HttpSession:
    """Runs operations on the connections that this process shares."""

    def __init__(self, address: ServerAddress) -> None:
        self._address = address
        self._connections = shared_connections(address)
        self._connections.join()
        self._closed = False

    def run(self, operation: Operation[T], seconds: float = inf, *, consumes: bool = False) -> T:
        """Run one operation, which is one request."""

        def perform(call: RemoteCall) -> Any:
            body = body_of(call, seconds, consumes=consumes)
            status, answer = self._connections.post(CALL_PATH, body, seconds)
            return read_answer(status, answer, call.operation.result.decode, self._address.text)

        return drive(operation(), perform)

    def close(self) -> None:
        """Leave the connections, which close with their last user."""
        if not self._closed:
            self._closed = True
            self._connections.leave()


class AsyncHttpSession:
    """Runs operations on the connections that this event loop shares."""

    def __init__(self, address: ServerAddress) -> None:
        self._address = address
        self._client = shared_client(address)
        self._client.join()
        self._closed = False

    async def run(
        self, operation: Operation[T], seconds: float = inf, *, consumes: bool = False
    ) -> T:
        """Run one operation, which is one request."""

        async def perform(call: RemoteCall) -> Any:
            body = body_of(call, seconds, consumes=consumes)
            status, answer = await self._client.post(CALL_PATH, body, seconds)
            return read_answer(status, answer, call.operation.result.decode, self._address.text)

        return await drive_async(operation(), perform)

    async def close(self) -> None:
        """Leave the connections, which close with their last user."""
        if not self._closed:
            self._closed = True
            await self._client.leave()
