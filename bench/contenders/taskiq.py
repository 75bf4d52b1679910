"""The peer taskiq, on a stream of Redis."""

import asyncio
from collections.abc import Callable
from typing import Any

from taskiq.receiver import Receiver
from taskiq_redis import RedisStreamBroker

from bench.contender import Tally, stamp
from bench.contender_async import AsyncContender, pinged, timed_async, timed_together

CONCURRENCY = 100
READY_AFTER = 1.0  # seconds, because it does not report when it listens


class OnRedis(AsyncContender):
    """Uses its broker with acks, runs a hundred at once and fetches a hundred ahead."""

    async def open(self) -> None:
        """Connect."""
        self._broker = RedisStreamBroker(self.url)
        self._look: Callable[[Any], object] = lambda _: None

        @self._broker.task("bench")
        async def handle(payload: Any) -> None:
            self._look(payload)

        self._handle = handle
        await self._broker.startup()

    async def shut(self) -> None:
        """Close its pool."""
        await self._broker.shutdown()

    def load(self, messages: int) -> None:
        """Send."""
        self.offer_together(messages, CONCURRENCY)

    def offer_one(self, messages: int) -> float:
        """Send."""
        return self.run(timed_async(messages, lambda _: self._handle.kiq(self.payload)))

    def offer_together(self, messages: int, callers: int) -> float:
        """Send in several tasks."""
        return self.run(timed_together(messages, callers, lambda _: self._handle.kiq(self.payload)))

    def consume(self, messages: int) -> float:
        """Run a receiver."""
        done = asyncio.Event()
        tally = Tally(messages, done.set)
        self.run(self._work(lambda _: tally.count(), done, lambda: None))
        return tally.seconds

    def receive(self, messages: int, ready: Callable[[], None]) -> list[float]:
        """Run a receiver."""
        done, ages = asyncio.Event(), list[float]()
        tally = Tally(messages, done.set)

        def look(sent: float) -> None:
            ages.append(stamp() - sent)
            tally.count()

        self.run(self._work(look, done, ready))
        return ages

    def ping(self, messages: int) -> None:
        """Send."""
        self.run(pinged(messages, lambda _, sent: self._handle.kiq(sent)))

    async def _work(
        self, look: Callable[[Any], None], done: asyncio.Event, ready: Callable[[], None]
    ) -> None:
        self._look = look
        receiver = Receiver(
            self._broker, max_async_tasks=CONCURRENCY, max_prefetch=CONCURRENCY, run_startup=False
        )
        listening = asyncio.create_task(receiver.listen(done))
        asyncio.get_running_loop().call_later(READY_AFTER, ready)
        await done.wait()
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
