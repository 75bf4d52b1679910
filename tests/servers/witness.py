"""Processes that write down what a queue has acknowledged to them, in files of their own.

What they wrote is all that may be expected of a server that died under them.
"""

import asyncio
from collections.abc import Iterable, Iterator
from datetime import timedelta
from itertools import count
from pathlib import Path

from duequeue import AsyncQueue, Message, Queue

TOMORROW = timedelta(days=1)


class Journal:
    """The keys that one process was promised something about, and whether it should go on."""

    def __init__(self, folder: Path, name: str) -> None:
        self.path = folder / name
        self._stop = folder / "stop"

    def __len__(self) -> int:
        return len(self.read())

    def write(self, keys: Iterable[str]) -> None:
        """Note keys once the queue's call has returned."""
        with self.path.open("a") as file:
            file.writelines(f"{key}\n" for key in keys)

    def read(self) -> list[str]:
        """Return the keys so far; a line that is being written does not count yet."""
        if not self.path.exists():
            return []
        *whole, _ = self.path.read_text().split("\n")
        return whole

    def stop(self) -> None:
        """Have every process of this folder end."""
        self._stop.touch()

    @property
    def stopped(self) -> bool:
        return self._stop.exists()


def fill(url: str, name: str, number: int) -> None:
    """Offer messages that are due, for the processes that ack them."""
    with Queue.open(url, "orders") as queue:
        queue.offer_batch(Message(f"{name}-{each}", each) for each in range(number))


def offer(url: str, journal: Journal, name: str) -> None:
    """Offer one message after the other, one by one and in batches, due tomorrow."""
    with Queue.open(url, "letters") as queue:
        for batch in _batches(name):
            if journal.stopped:
                return
            first = batch[0]
            if len(batch) == 1:
                queue.offer(first.key, first.payload, first.due)
            else:
                queue.offer_batch(batch)
            journal.write(message.key for message in batch)


def offer_awaiting(url: str, journal: Journal, name: str) -> None:
    """Do the same on an event loop."""

    async def run() -> None:
        async with AsyncQueue.open(url, "letters") as queue:
            for batch in _batches(name):
                if journal.stopped:
                    return
                await queue.offer_batch(batch)
                journal.write(message.key for message in batch)

    asyncio.run(run())


def ack(url: str, journal: Journal) -> None:
    """Poll and ack until stopped."""
    with Queue.open(url, "orders") as queue:
        while not journal.stopped:
            deliveries = queue.try_poll_many(5)
            journal.write([delivery.key for delivery in deliveries if delivery.ack()])


def ack_awaiting(url: str, journal: Journal) -> None:
    """Do the same on an event loop."""

    async def run() -> None:
        async with AsyncQueue.open(url, "orders") as queue:
            while not journal.stopped:
                deliveries = await queue.try_poll_many(5)
                journal.write([one.key for one in deliveries if await one.ack()])

    asyncio.run(run())


def _batches(name: str) -> Iterator[list[Message[int]]]:
    for number in count():
        size = 1 + number % 3
        yield [Message(f"{name}-{number}-{each}", each, TOMORROW) for each in range(size)]
