"""Connections whose clients send a request too slowly, or do not read the answer, are closed."""

import asyncio
from typing import Any

from duequeue.server.connections import Connections, CountedProtocol
from duequeue.server.heads import UnfinishedHeads
from duequeue.server.limits import Limits


class ImpatientProtocol(CountedProtocol):
    """HTTP/1.1 with a time limit for each head, and for each answer that nobody reads.

    uvicorn itself limits only the time between two requests.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._head_timer: asyncio.TimerHandle | None = None
        self._answer_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Expect a head."""
        super().connection_made(transport)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Expect nothing more from the client."""
        self._stop_timers()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """Expect the rest of a head, of which this is the beginning."""
        if self._head_timer is None:
            self._expect_head()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Go on to the body, which the app limits."""
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
        super().on_headers_complete()

    def pause_writing(self) -> None:
        """Expect the client to read the answer."""
        super().pause_writing()
        self._answer_timer = self.loop.call_later(self.limits.answer_seconds, self._give_up)

    def resume_writing(self) -> None:
        """Go on."""
        if self._answer_timer is not None:
            self._answer_timer.cancel()
            self._answer_timer = None
        super().resume_writing()

    def _expect_head(self) -> None:
        self._head_timer = self.loop.call_later(self.limits.head_seconds, self._give_up)

    def _give_up(self) -> None:
        self.transport.abort()

    def _stop_timers(self) -> None:
        for timer in (self._head_timer, self._answer_timer):
            if timer is not None:
                timer.cancel()
        self._head_timer = self._answer_timer = None


def protocol_with(limits: Limits) -> type[ImpatientProtocol]:
    """Return the protocol with these limits."""
    shared = {
        "limits": limits,
        "heads": UnfinishedHeads(limits.unfinished_heads_bytes),
        "open": Connections(limits),
    }
    return type("Protocol", (ImpatientProtocol,), shared)
