"""Who waits for the next due time may leave: another one then waits for it instead."""

import asyncio
from datetime import datetime
from typing import Any

from duequeue import AsyncQueue
from duequeue.contract.fixtures import START
from duequeue.contract.phrases import DAY, MILLISECOND, PATIENCE


class HandClock:
    """A clock that is moved by hand and wakes nobody, as a machine's own does."""

    def __init__(self) -> None:
        self.instant = START

    def now(self) -> datetime:
        return self.instant


async def delivered_after_another_gave_up(url: str) -> str:
    clock = HandClock()
    options: dict[str, Any] = {"clock": clock, "poll_interval": DAY}
    async with AsyncQueue.open(url, "orders", **options) as queue:
        impatient = asyncio.create_task(queue.poll(timeout=100 * MILLISECOND))
        await queue.stats()
        patient = asyncio.create_task(queue.poll())
        await queue.stats()
        await queue.offer("a", 1, 200 * MILLISECOND)  # of which the first one is told
        assert await impatient is None
        clock.instant += 200 * MILLISECOND
        delivery = await asyncio.wait_for(patient, PATIENCE)
        assert delivery is not None
        return delivery.key


def test_the_one_who_knew_when_to_look_gives_up(store_url: str) -> None:
    assert asyncio.run(delivered_after_another_gave_up(store_url)) == "a"
