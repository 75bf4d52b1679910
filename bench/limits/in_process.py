"""The limit of the service: the library in the process of its caller."""

from typing import Any

from bench.contender import BATCH, chunks
from bench.contender_uvloop import CALLERS, UvloopContender, shared_out
from duequeue import AsyncQueue, Message


class InProcess(UvloopContender):
    """`AsyncQueue`, without a network."""

    notes = "the same store, but neither HTTP nor a second process"

    async def open(self) -> None:
        """Open the queue."""
        self._queue: AsyncQueue[Any] = await AsyncQueue.open(self.url, "bench")

    async def shut(self) -> None:
        """Close the queue."""
        await self._queue.close()

    def load(self, messages: int) -> None:
        """Offer lists."""
        self.run(self._offer_hundreds(messages))

    def offer_hundreds(self, messages: int) -> float:
        """Call `offer_batch` with a hundred."""
        return self.run(self._offer_hundreds(messages))

    def take_hundreds(self, messages: int) -> float:
        """Call `try_poll_many` and `ack_many`."""
        return self.run(self._take_hundreds(messages))

    async def _offer_hundreds(self, messages: int) -> float:
        async def offer(batch: list[str]) -> None:
            await self._queue.offer_batch([Message(key, self.payload) for key in batch])

        keys = (f"key-{number}" for number in range(messages))
        return await shared_out(chunks(keys, BATCH), [offer] * CALLERS)

    async def _take_hundreds(self, messages: int) -> float:
        async def take(_: int) -> None:
            await self._queue.ack_many(await self._queue.try_poll_many(BATCH))

        return await shared_out(range(messages // BATCH), [take] * CALLERS)
