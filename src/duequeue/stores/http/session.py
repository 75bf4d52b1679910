"""Sessions that call a server, blocking or awaiting."""

from math import inf
from typing import Any, TypeVar

from duequeue.drive.steps import drive, drive_async
from duequeue.port.store import Operation
from duequeue.stores.http.address import ServerAddress
from duequeue.stores.http.answers import read_answer
from duequeue.stores.http.calls import CALL_PATH, body_of
from duequeue.stores.http.connections import shared_connections
from duequeue.stores.http.connections_async import shared_client
from duequeue.stores.http.store import RemoteCall

T = TypeVar("T")


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
