"""A consumer in another process, which one of its messages kills."""

import asyncio
import os
from datetime import datetime
from typing import Any

from duequeue import AsyncQueue, ManualClock
from duequeue.contract.stage import until
from tests.race.consumer_parts import tell_from_any_thread
from tests.race.parts import open_queue

DEADLY = "deadly"


def handle(delivery: Any) -> None:
    """Tell which message it is, and die of one of them."""
    tell_from_any_thread(delivery.key)
    if delivery.key == DEADLY:
        os._exit(137)


def handle_all(url: str, now: datetime, options: dict[str, Any]) -> None:
    """Consume on threads until nothing is due and nothing is leased."""
    with open_queue(url, now) as queue:
        consuming: Any = queue
        with consuming.consume(handle, **options):
            until(lambda: queue.stats().total == 0)


def handle_all_async(url: str, now: datetime, options: dict[str, Any]) -> None:
    """Do the same on tasks."""

    async def handle_it(delivery: Any) -> None:
        handle(delivery)

    async def consume() -> None:
        async with (
            AsyncQueue[int].open(url, "orders", clock=ManualClock(now)) as queue,
            queue.consume(handle_it, **options),
        ):
            with open_queue(url, now) as seen:
                await asyncio.to_thread(until, lambda: seen.stats().total == 0)

    asyncio.run(consume())
