"""A wake-up outlives the consumer that it reached: another one looks instead."""

import asyncio
from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest

from duequeue import AsyncQueue, ManualClock, Queue
from duequeue.contract.fixtures import START
from duequeue.contract.phrases import DAY, MILLISECOND, PATIENCE
from tests.race.watching import WAITING_FOR_A_LOCK, until_one_async


class HandClock:
    """A clock that is moved by hand and wakes nobody, as a machine's own does."""

    def __init__(self) -> None:
        self._instant = START
        self._first_to_ask: asyncio.Future[asyncio.Task[Any]] | None = None

    def now(self) -> datetime:
        task, first = asyncio.current_task(), self._first_to_ask
        if task is not None and first is not None and not first.done():
            first.set_result(task)
        return self._instant

    def advance(self, by: timedelta) -> "asyncio.Future[asyncio.Task[Any]]":
        """Move the clock; the task that asks first is to come."""
        self._instant += by
        self._first_to_ask = asyncio.get_running_loop().create_future()
        return self._first_to_ask


async def waiting_polls(queue: AsyncQueue[Any]) -> "list[asyncio.Task[Any]]":
    """Three consumers that have looked and wait, and have heard the same."""
    *polls, leaving = [asyncio.create_task(queue.poll()) for _ in range(4)]
    await some_time(queue)
    leaving.cancel()  # which makes all the others look once more
    await some_time(queue)
    return polls


async def some_time(queue: AsyncQueue[Any]) -> None:
    """Let others do what they have to do, for as long as some round trips take."""
    for _ in range(20):
        await queue.stats()
        await asyncio.sleep(0)  # because in memory, nobody waits for a round trip


async def key_for_one_of(polls: "list[asyncio.Task[Any]]") -> str:
    done, others = await asyncio.wait(polls, timeout=PATIENCE, return_when="FIRST_COMPLETED")
    for poll in others:
        poll.cancel()
    assert done, "all of them sleep on"
    return str(done.pop().result().key)


@pytest.mark.parametrize("store", ["memory", "sqlite", "postgres", "redis"], indirect=True)
def test_the_woken_consumer_is_cancelled(store_url: str, clock: ManualClock) -> None:
    async def scenario() -> None:
        options: dict[str, Any] = {"clock": clock, "poll_interval": DAY}
        async with AsyncQueue.open(store_url, "orders", **options) as queue:
            with Queue.open(store_url, "orders", **options) as blocking:
                polls = await waiting_polls(queue)
                blocking.offer("a", 1)  # which lets nothing else happen on this loop
                polls[0].cancel()  # it was woken, and has not looked yet
                assert await key_for_one_of(polls[1:]) == "a"

    asyncio.run(scenario())


@pytest.mark.parametrize("store", ["postgres"], indirect=True)
def test_the_looking_consumer_is_cancelled(store_url: str, watch: psycopg.Connection) -> None:
    async def scenario() -> None:
        clock = HandClock()
        options: dict[str, Any] = {"clock": clock, "poll_interval": DAY}
        async with AsyncQueue.open(store_url, "orders", **options) as queue:
            await queue.offer("a", 1, 50 * MILLISECOND)
            polls = await waiting_polls(queue)
            with psycopg.connect(store_url) as lock:
                lock.execute("LOCK TABLE duequeue_message IN ACCESS EXCLUSIVE MODE")
                looking = await clock.advance(50 * MILLISECOND)  # it does so for all of them
                polls.remove(looking)
                # The server ignores a cancellation that arrives before the statement, and would
                # then lease the message to nobody.
                await until_one_async(watch, WAITING_FOR_A_LOCK)
                looking.cancel()
                await asyncio.wait([looking])
            assert await key_for_one_of(polls) == "a"

    asyncio.run(scenario())
