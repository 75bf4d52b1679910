"""DueQueue over HTTP: one `duequeue serve`, and a light client in this process."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

import msgspec

from bench.contender import BATCH, chunks
from bench.contender_uvloop import CALLERS, UvloopContender, shared_out
from bench.http_connection import HttpConnection, connected
from bench.server_process import ServerProcess

PATH = "/v1/queues/bench"
SETTLING_SECONDS = 1.0
IDLE_SECONDS = 10.0
SPREAD_SECONDS = 5.0
LEAD_SECONDS = 1.0


class Service(UvloopContender):
    """`duequeue serve` without history, like the library's default."""

    async def open(self) -> None:
        """Start the server."""
        options = ("--url", self.url, "--keep-history", "0", "--log-level", "error")
        self._server = ServerProcess(("-m", "duequeue", "serve", *options))
        (self._first,) = await connected(self._server.port, 1)
        await self._first.post_json(f"{PATH}:poll", {"wait": "1ms"})  # creates the queue

    async def shut(self) -> None:
        """Stop the server."""
        self._first.close()
        self._server.stop()

    def load(self, messages: int) -> None:
        """Offer lists."""
        self.run(self._offer_hundreds(messages))

    def offer_hundreds(self, messages: int) -> float:
        """Send lists of a hundred."""
        return self.run(self._offer_hundreds(messages))

    def take_hundreds(self, messages: int) -> float:
        """Poll a hundred, and ack them with the next poll."""
        return self.run(self._take_hundreds(messages))

    def offer_connected(self, messages: int, connections: int) -> float:
        """Send one message after the other on each connection."""
        return self.run(self._offer_connected(messages, connections))

    def share_when_idle(self, clients: int) -> float:
        """Let polls wait."""
        return self.run(self._share_when_idle(clients))

    def wake(self, clients: int) -> list[float]:
        """Let polls wait, and offer a message for each."""
        return self.run(self._wake(clients))

    async def _offer_hundreds(self, messages: int) -> float:
        keys = (f"key-{number}" for number in range(messages))

        async def offer(connection: HttpConnection, batch: list[str]) -> None:
            given = [{"key": key, "payload": self.payload} for key in batch]
            await connection.post(f"{PATH}/messages", msgspec.json.encode(given))

        connections = await connected(self._server.port, CALLERS)
        return await shared_out(chunks(keys, BATCH), [partial(offer, each) for each in connections])

    async def _take_hundreds(self, messages: int) -> float:
        async def drain(connection: HttpConnection) -> None:
            """Poll until nothing is found; the last poll acks what the one before it found."""
            found = await connection.post_json(f"{PATH}:poll", {"limit": BATCH})
            while tokens := [each["token"] for each in found["deliveries"]]:
                asked = {"limit": BATCH, "settle": {"ack": tokens}}
                found = await connection.post_json(f"{PATH}:poll", asked)

        connections = await connected(self._server.port, CALLERS)
        seconds = await shared_out(connections, [drain] * CALLERS)
        left = (await self._first.get_json(PATH))["total"]
        if left:
            raise RuntimeError(f"{left} of {messages} messages were not acked")
        return seconds

    async def _offer_connected(self, messages: int, connections: int) -> float:
        async def offer(connection: HttpConnection, number: int) -> None:
            given = {"key": f"key-{number}", "payload": self.payload}
            await connection.post(f"{PATH}/messages", msgspec.json.encode(given))

        opened = await connected(self._server.port, connections)
        return await shared_out(range(messages), [partial(offer, each) for each in opened])

    async def _share_when_idle(self, clients: int) -> float:
        waiting = await self._waiting(clients)
        before = self._server.computed()
        await asyncio.sleep(IDLE_SECONDS)
        share = (self._server.computed() - before) / IDLE_SECONDS
        for task in waiting:
            task.cancel()
        return share

    async def _wake(self, clients: int) -> list[float]:
        waiting = await self._waiting(clients)
        start = datetime.now(UTC) + timedelta(seconds=LEAD_SECONDS)
        gap = timedelta(seconds=SPREAD_SECONDS) / clients
        messages = (
            {"key": f"key-{number}", "due_at": (start + number * gap).isoformat()}
            for number in range(clients)
        )
        for batch in chunks(messages, BATCH):
            await self._first.post_json(f"{PATH}/messages", batch)
        return [await each for each in waiting]

    async def _waiting(self, clients: int) -> Sequence[asyncio.Task[float]]:
        """Return polls that wait at the server."""
        connections = await connected(self._server.port, clients)
        waiting = [asyncio.create_task(_lateness_of_one(each)) for each in connections]
        await asyncio.sleep(SETTLING_SECONDS)
        return waiting


async def _lateness_of_one(connection: HttpConnection) -> float:
    """Poll one message, and return how many milliseconds after its due time it came."""
    answer = await connection.post(f"{PATH}:poll", b'{"wait": 60}')
    now = datetime.now(UTC)
    (delivery,) = msgspec.json.decode(answer)["deliveries"]
    return (now - datetime.fromisoformat(delivery["due_at"])) / timedelta(milliseconds=1)
