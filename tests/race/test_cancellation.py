"""A cancelled task ends at once, and leaves nothing half done."""

import asyncio
import gc
import sqlite3
from collections.abc import Callable, Coroutine
from time import monotonic
from typing import Any, TypeAlias

import psycopg
import pytest

from duequeue import AsyncQueue, ManualClock, Message, OfferOutcome
from tests.contract.phrases import DAY, MINUTE, snapshot
from tests.fixtures.faces import QueueFace
from tests.race.watching import LEFT_IN_TRANSACTION, WAITING_FOR_A_LOCK

CREATED = OfferOutcome.CREATED

AT_ONCE = 3.0  # seconds; SQLite itself may hold on to a call for one of them

on_sqlite = pytest.mark.parametrize("store", ["sqlite"], indirect=True)
on_postgres = pytest.mark.parametrize("store", ["postgres"], indirect=True)

Call: TypeAlias = Callable[[AsyncQueue[Any]], Coroutine[Any, Any, object]]

# The batch takes a transaction of two statements, the second of which is for key `a`.
OFFERS: dict[str, Call] = {
    "one": lambda queue: queue.offer("a", 2),
    "two statements": lambda queue: queue.offer_batch(
        [Message("b", 1), Message("b", 2), Message("a", 2)]
    ),
}


async def cancel(task: "asyncio.Task[object]") -> None:
    """Cancel, and see that the task does not take long to end."""
    began = monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert monotonic() - began < AT_ONCE


def run(scenario: Coroutine[Any, Any, None], caplog: pytest.LogCaptureFixture) -> None:
    """Run to the end; the event loop must have nothing to complain of."""
    asyncio.run(scenario)
    gc.collect()
    assert [record.message for record in caplog.records if record.name == "asyncio"] == []


@on_postgres
@pytest.mark.parametrize("offer", OFFERS.values(), ids=OFFERS)
def test_cancelled_in_a_statement(
    bystander: QueueFace,
    store_url: str,
    lock: psycopg.Connection,
    watch: psycopg.Connection,
    offer: Call,
    clock: ManualClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        async with AsyncQueue.open(store_url, "orders", clock=clock) as queue:
            task = asyncio.create_task(offer(queue))
            while watch.execute(WAITING_FOR_A_LOCK).fetchone() != (1,):
                await asyncio.sleep(0)
            await cancel(task)
            assert watch.execute(LEFT_IN_TRANSACTION).fetchone() == (0,)
            assert await queue.offer("afterwards", 1) is CREATED

    run(scenario(), caplog)
    lock.rollback()
    assert snapshot(bystander, "a").payload == 1
    assert not bystander.contains("b")


@on_sqlite
@pytest.mark.parametrize("offer", OFFERS.values(), ids=OFFERS)
def test_cancelled_while_the_file_is_busy(
    bystander: QueueFace,
    store_url: str,
    writer: sqlite3.Connection,
    offer: Call,
    clock: ManualClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        async with AsyncQueue.open(store_url, "orders", clock=clock) as queue:
            task = asyncio.create_task(offer(queue))
            await asyncio.sleep(0)  # by then a thread has the offer
            await cancel(task)
            writer.rollback()
            assert await queue.offer("afterwards", 1) is CREATED

    run(scenario(), caplog)
    assert snapshot(bystander, "a").payload == 1
    assert not bystander.contains("b")


def test_cancelled_at_any_moment(
    bystander: QueueFace, store_url: str, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Whether it was still made or not: each batch is there as a whole or not at all."""

    async def scenario() -> None:
        async with AsyncQueue.open(store_url, "orders", clock=clock) as queue:
            for number in range(40):
                keys = [f"{number}/{part}" for part in "xyz"]
                batch = [Message(key, 1, DAY) for key in [*keys, keys[0]]]
                task = asyncio.create_task(queue.offer_batch(batch))
                for _ in range(number % 8):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait([task])
                assert len({await queue.contains(key) for key in keys}) == 1

    run(scenario(), caplog)


def test_cancelled_in_a_poll(
    store_url: str, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with AsyncQueue.open(store_url, "orders", clock=clock, poll_interval=DAY) as queue:
            polls = [asyncio.create_task(queue.poll()) for _ in range(3)]
            await queue.stats()
            for poll in polls[1:]:
                await cancel(poll)
            await queue.offer("a", 1)
            delivery = await asyncio.wait_for(polls[0], MINUTE.total_seconds())
            assert delivery is not None
            assert await delivery.ack()

    run(scenario(), caplog)
