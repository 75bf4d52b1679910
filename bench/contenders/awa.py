"""The peer awa, a library in Rust with an interface for Python."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from awa import AsyncClient

from bench.contender import Tally, stamp
from bench.contender_async import AsyncContender, pinged, timed_async, timed_together

CONCURRENCY = 256
CHUNK = 5000
QUEUE = "bench"
WORKER = {"name": QUEUE, "max_workers": CONCURRENCY, "claimers": 2, "claim_batch_size": 256}


@dataclass
class Ping:
    """The arguments of its handler."""

    payload: str = ""
    sent: float = 0


class Awa(AsyncContender):
    """Uses COPY for batches, and runs 256 handlers at once."""

    notes = "Rust; keeps finished messages; no unique keys unless asked"

    async def open(self) -> None:
        """Install its tables unless another process has done so."""
        self._client = AsyncClient(self.url, max_connections=20)
        await self._client.migrate()
        await self._client.install_queue_storage()

    async def shut(self) -> None:
        """Close its pool."""
        await self._client.close()

    def load(self, messages: int) -> None:
        """Enqueue by COPY."""
        self.run(self._enqueue_batches(messages))

    def offer_one(self, messages: int) -> float:
        """Insert."""
        return self.run(timed_async(messages, self._insert))

    def offer_together(self, messages: int, callers: int) -> float:
        """Insert in several tasks."""
        return self.run(timed_together(messages, callers, self._insert))

    def offer_batch(self, messages: int) -> float:
        """Enqueue by COPY."""
        return self.run(timed_async(1, lambda _: self._enqueue_batches(messages)))

    def consume(self, messages: int) -> float:
        """Run a worker."""
        done = asyncio.Event()
        tally = Tally(messages, done.set)
        self.run(self._work(lambda _: tally.count(), done, lambda: None))
        return tally.seconds

    def receive(self, messages: int, ready: Callable[[], None]) -> list[float]:
        """Run a worker."""
        done, ages = asyncio.Event(), list[float]()
        tally = Tally(messages, done.set)

        def look(ping: Ping) -> None:
            ages.append(stamp() - ping.sent)
            tally.count()

        self.run(self._work(look, done, ready))
        return ages

    def ping(self, messages: int) -> None:
        """Insert."""
        self.run(pinged(messages, lambda _, sent: self._client.insert(Ping("", sent), queue=QUEUE)))

    def stay_idle(self, seconds: float) -> None:
        """Run a worker."""

        async def run() -> None:
            done = asyncio.Event()
            asyncio.get_running_loop().call_later(seconds, done.set)
            await self._work(lambda _: None, done, lambda: None)

        self.run(run())

    async def _insert(self, _: int) -> None:
        await self._client.insert(Ping(self.payload), queue=QUEUE)

    async def _enqueue_batches(self, messages: int) -> None:
        for start in range(0, messages, CHUNK):
            batch = [Ping(self.payload)] * min(CHUNK, messages - start)
            await self._client.enqueue_many_copy(batch, queue=QUEUE)

    async def _work(
        self, look: Callable[[Ping], None], done: asyncio.Event, ready: Callable[[], None]
    ) -> None:
        loop = asyncio.get_running_loop()

        @self._client.task(Ping, queue=QUEUE)
        async def handle(job: Any) -> None:
            look(job.args)

        await self._client.start([WORKER])
        loop.call_later(1, ready)
        await done.wait()
        await self._client.shutdown()
