"""A cancelled task ends at once, and leaves nothing half done."""

import asyncio
import gc
import sqlite3
import threading
from collections.abc import Callable, Coroutine
from time import monotonic
from typing import Any, TypeAlias

import psycopg
import pytest

from duequeue import AsyncQueue, ManualClock, Message, OfferOutcome
from duequeue.contract.faces import QueueFace
from duequeue.contract.phrases import DAY, PATIENCE, snapshot
from tests.race.watching import LEFT_IN_TRANSACTION, WAITING_FOR_A_LOCK, until_one_async

CREATED = OfferOutcome.CREATED

AT_ONCE = 10.0  # seconds; of which SQLite itself may hold on to a call for one

on_sqlite = pytest.mark.parametrize("store", ["sqlite"], indirect=True)
on_postgres = pytest.mark.parametrize("store", ["postgres"], indirect=True)

Scenario: TypeAlias = Callable[[AsyncQueue[Any]], Coroutine[Any, Any, object]]

# The batch takes a transaction of two statements, the second of which is for key `a`.
OFFERS: dict[str, Scenario] = {
    "one": lambda queue: queue.offer("a", 2),
    "two statements": lambda queue: queue.offer_batch(
        [Message("b", 1), Message("b", 2), Message("a", 2)]
    ),
}


@pytest.fixture
def play(
    store_url: str, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> Callable[[Scenario], None]:
    """Plays a scenario to its end, after which the event loop has nothing to complain of."""

    async def with_queue(scenario: Scenario) -> None:
        options: dict[str, Any] = {"clock": clock, "poll_interval": DAY}
        async with AsyncQueue.open(store_url, "orders", **options) as queue:
            await scenario(queue)

    def play(scenario: Scenario) -> None:
        asyncio.run(with_queue(scenario))
        gc.collect()
        assert [record.message for record in caplog.records if record.name == "asyncio"] == []

    return play


async def cancel(task: "asyncio.Task[Any]") -> None:
    """Cancel, and see that the task does not take long to end."""
    began = monotonic()
    task.cancel()
    await asyncio.wait([task], timeout=PATIENCE)
    assert task.cancelled(), "the cancellation was lost"
    assert monotonic() - began < AT_ONCE


@on_postgres
@pytest.mark.parametrize("offer", OFFERS.values(), ids=OFFERS)
def test_cancelled_in_a_statement(
    play: Callable[[Scenario], None],
    bystander: QueueFace,
    lock: psycopg.Connection,
    watch: psycopg.Connection,
    offer: Scenario,
) -> None:
    async def scenario(queue: AsyncQueue[Any]) -> None:
        task = asyncio.create_task(offer(queue))
        await until_one_async(watch, WAITING_FOR_A_LOCK)
        await cancel(task)
        assert watch.execute(LEFT_IN_TRANSACTION).fetchone() == (0,)
        assert await queue.offer("afterwards", 1) is CREATED

    play(scenario)
    lock.rollback()
    assert snapshot(bystander, "a").payload == 1
    assert not bystander.contains("b")


@pytest.fixture
def statement_begun(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set when a statement begins to run on any SQLite connection opened from now on."""
    begun, connect = threading.Event(), sqlite3.connect

    def connect_and_trace(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*arguments, **options)
        connection.set_trace_callback(lambda _: begun.set())
        return connection

    monkeypatch.setattr(sqlite3, "connect", connect_and_trace)
    return begun


@on_sqlite
@pytest.mark.parametrize("offer", OFFERS.values(), ids=OFFERS)
def test_cancelled_while_the_file_is_busy(
    play: Callable[[Scenario], None],
    bystander: QueueFace,
    writer: sqlite3.Connection,
    statement_begun: threading.Event,
    offer: Scenario,
) -> None:
    async def scenario(queue: AsyncQueue[Any]) -> None:
        statement_begun.clear()
        task = asyncio.create_task(offer(queue))
        await asyncio.to_thread(statement_begun.wait, PATIENCE)
        await cancel(task)
        writer.rollback()
        assert await queue.offer("afterwards", 1) is CREATED

    play(scenario)
    assert snapshot(bystander, "a").payload == 1
    assert not bystander.contains("b")


def test_cancelled_at_any_moment(play: Callable[[Scenario], None]) -> None:
    async def scenario(queue: AsyncQueue[Any]) -> None:
        for number in range(40):
            keys = [f"{number}/{part}" for part in "xyz"]
            batch = [Message(key, 1, DAY) for key in [*keys, keys[0]]]
            task = asyncio.create_task(queue.offer_batch(batch))
            for _ in range(number % 8):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            # Made in time or not: the batch is there as a whole or not at all.
            assert len({await queue.contains(key) for key in keys}) == 1

    play(scenario)


def test_cancelled_in_a_poll(play: Callable[[Scenario], None]) -> None:
    async def scenario(queue: AsyncQueue[Any]) -> None:
        polls = [asyncio.create_task(queue.poll()) for _ in range(3)]
        await queue.stats()
        for poll in polls[1:]:
            await cancel(poll)
        await queue.offer("a", 1)
        delivery = await asyncio.wait_for(polls[0], PATIENCE)
        assert delivery is not None
        assert await delivery.ack()

    play(scenario)


@on_postgres
def test_cancelled_before_the_answer(
    play: Callable[[Scenario], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cancellation comes after a statement was sent, and its answer is never read."""
    execute = psycopg.AsyncCursor.execute

    async def cancelled_execute(cursor: Any, query: Any, *rest: Any, **options: Any) -> Any:
        if "INSERT INTO duequeue_message" not in str(query):
            return await execute(cursor, query, *rest, **options)
        cursor.connection.pgconn.send_query(b"SELECT 1")
        raise asyncio.CancelledError

    async def scenario(queue: AsyncQueue[Any]) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(psycopg.AsyncCursor, "execute", cancelled_execute)
            offering = asyncio.create_task(queue.offer("a", 2))
            await asyncio.wait([offering])
            assert offering.cancelled()
        assert await queue.offer("a", 3) is CREATED

    play(scenario)


@on_postgres
def test_no_cancellation_spoils_a_connection(store_url: str) -> None:
    """Neither while a statement is prepared, nor if the task is cancelled a second time."""
    batch = [Message("a", 1, DAY), Message("b", 1, DAY), Message("a", 2, DAY)]

    async def cancelled_after(seconds: float, *, offers: int, twice: bool) -> None:
        async with AsyncQueue.open(f"{store_url}?pool_size=1", "orders") as queue:
            for _ in range(offers):
                await queue.offer_batch(batch)
            task = asyncio.create_task(queue.offer_batch(batch))
            await asyncio.wait([task], timeout=seconds)
            task.cancel()
            if twice:
                await asyncio.sleep(0)
                task.cancel()
            await asyncio.wait([task])
            assert task.cancelled() or task.exception() is None
            for _ in range(3):
                await queue.offer_batch(batch)

    for number in range(60):
        asyncio.run(cancelled_after(number / 20_000, offers=number % 4, twice=number % 2 == 0))
    gc.collect()
