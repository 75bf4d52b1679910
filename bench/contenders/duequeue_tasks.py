"""DueQueue's asyncio face on PostgreSQL."""

import asyncio
from collections.abc import Callable
from typing import Any

from bench.contender import Tally, stamp
from bench.contender_async import AsyncContender, pinged, timed_async, timed_together
from bench.contenders.duequeue_blocking import QUEUE
from duequeue import AsyncDelivery, AsyncQueue, Message, OfferOutcome


class Tasks(AsyncContender):
    """`AsyncQueue`, with every default."""

    async def open(self) -> None:
        """Open the queue."""
        self._queue: AsyncQueue[Any] = await AsyncQueue.open(self.url, QUEUE)

    async def shut(self) -> None:
        """Close the queue."""
        await self._queue.close()

    def load(self, messages: int) -> None:
        """Await `offer_batch`."""
        batch = [Message(f"load-{n}", self.payload) for n in range(messages)]
        self.run(self._queue.offer_batch(batch))

    def offer_one(self, messages: int) -> float:
        """Await `offer`."""
        return self.run(timed_async(messages, self._offer))

    def offer_together(self, messages: int, callers: int) -> float:
        """Await `offer` in several tasks."""
        return self.run(timed_together(messages, callers, self._offer))

    def consume(self, messages: int) -> float:
        """Run `consume`."""
        done = asyncio.Event()
        tally = Tally(messages, done.set)
        self.run(self._handle(lambda _: tally.count(), done, lambda: None))
        return tally.seconds

    def receive(self, messages: int, ready: Callable[[], None]) -> list[float]:
        """Run `consume`."""
        done, ages = asyncio.Event(), list[float]()
        tally = Tally(messages, done.set)

        def look(delivery: AsyncDelivery[Any]) -> None:
            ages.append(stamp() - delivery.payload)
            tally.count()

        self.run(self._handle(look, done, ready))
        return ages

    def ping(self, messages: int) -> None:
        """Await `offer`."""
        self.run(pinged(messages, lambda n, stamped: self._queue.offer(f"ping-{n}", stamped)))

    async def _offer(self, number: int) -> OfferOutcome:
        return await self._queue.offer(f"key-{number}", self.payload)

    async def _handle(
        self,
        look: Callable[[AsyncDelivery[Any]], None],
        done: asyncio.Event,
        ready: Callable[[], None],
    ) -> None:
        async def handle(delivery: AsyncDelivery[Any]) -> None:
            look(delivery)

        async with self._queue.consume(handle):
            ready()
            await done.wait()
