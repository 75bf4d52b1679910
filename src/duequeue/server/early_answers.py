"""A connection is closed if its answer ends before its request, as after a wrong token."""

from collections.abc import MutableMapping
from functools import partial
from typing import Any

from duequeue.server.heads import LimitedProtocol


class ClosingProtocol(LimitedProtocol):
    """HTTP/1.1 that does not wait for the rest of a request that it has answered.

    It says so in the answer, and throws away for some seconds what still comes, because the answer
    would be lost if a client that is still sending met a closed connection.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.app = partial(self._answered, self.app)
        self._ends_early = False
        self._is_stopping = False
        self._answering: Any = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Hold nothing any more; the app refers to this.

        uvicorn notifies only the last request, but others may follow the one that waits.
        """
        super().connection_lost(exc)
        if self._answering is not None:
            self._answering.disconnected = True
            self._answering.message_event.set()
            self._answering = None
        del self.app

    def shutdown(self) -> None:
        """Close as soon as the answer has ended, because the server stops."""
        self._is_stopping = True
        super().shutdown()

    def on_response_complete(self) -> None:
        """Close soon, if the request has not come to its end."""
        super().on_response_complete()
        if self._ends_early and not self.transport.is_closing():
            self._unset_keepalive_if_required()
            self._is_last = True
            if self._is_stopping:
                self.transport.close()
                return
            if self.transport.can_write_eof():
                self.transport.write_eof()
            self.loop.call_later(self.limits.linger_seconds, self.transport.close)

    async def _answered(self, app: Any, scope: Any, receive: Any, send: Any) -> None:
        cycle = self._answering = send.__self__

        async def send_and_close(message: MutableMapping[str, Any]) -> None:
            if message["type"] != "http.response.start" or not cycle.more_body:
                await send(message)
                return
            cycle.keep_alive = False  # so that the head says it
            await send(message)
            cycle.keep_alive = True  # so that uvicorn does not close at once
            self._ends_early = True

        await app(scope, receive, send_and_close)
