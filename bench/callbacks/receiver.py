"""A receiver that answers at once or after a pause, in a process of its own.

It does as little as possible, so that its own speed is not measured. It looks for the end of a call
by its length, and answers with the same bytes each time.
"""

import asyncio
import json
import re
import sys
import time
from functools import partial
from typing import cast

import uvloop

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
FACTS = "/facts"

_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)


class Facts:
    """When calls came, and what their bodies were."""

    def __init__(self, pause: float) -> None:
        self.pause = pause
        self._forget()

    def _forget(self) -> None:
        self.calls = 0
        self.first_at = self.last_at = 0.0
        self.late: list[float] = []

    def note(self, body: bytes) -> None:
        """Note a call; if its body is a number, that is the instant at which it was due."""
        self.last_at = time.time()
        self.first_at = self.first_at or self.last_at
        self.calls += 1
        if body.isdigit():
            self.late.append(self.last_at * 1000 - int(body))

    def as_json(self) -> bytes:
        """Return everything, and forget it."""
        facts = {
            "calls": self.calls,
            "first_at": self.first_at,
            "last_at": self.last_at,
            "late": self.late,
        }
        self._forget()
        return json.dumps(facts).encode()


class Receiver(asyncio.Protocol):
    """One connection."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._unread = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the connection."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Answer each call that is complete."""
        self._unread += data
        while (end := self._unread.find(b"\r\n\r\n")) >= 0:
            found = _LENGTH.search(self._unread, 0, end)
            stop = end + 4 + (int(found[1]) if found else 0)
            if len(self._unread) < stop:
                return
            head, body = self._unread[:end], self._unread[end + 4 : stop]
            self._unread = self._unread[stop:]
            self._answer(head, body)

    def _answer(self, head: bytes, body: bytes) -> None:
        if head.startswith(b"GET " + FACTS.encode()):
            facts = self._facts.as_json()
            self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(facts))
            self._transport.write(facts)
            return
        self._facts.note(body)
        if self._facts.pause:
            later = asyncio.get_running_loop().call_later
            later(self._facts.pause, self._transport.write, ANSWER)
        else:
            self._transport.write(ANSWER)


async def serve(pause: float) -> None:
    """Listen on a free port, and print it."""
    make = partial(Receiver, Facts(pause))
    server = await asyncio.get_running_loop().create_server(make, "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(float(sys.argv[1])))
