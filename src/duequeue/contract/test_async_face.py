"""What only an asynchronous face can promise: how it opens, and what cancelling does."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from duequeue import AsyncDelivery, AsyncQueue, ManualClock, Message, QueueClosed
from duequeue.contract.phrases import DAY, HOUR, PATIENCE


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def patiently() -> None:
        async with asyncio.timeout(PATIENCE):
            await scenario()

    asyncio.run(patiently())


def test_opening_may_be_awaited(store_url: str, clock: ManualClock) -> None:
    async def scenario() -> None:
        queue = await AsyncQueue.open(store_url, "orders", clock=clock)
        await queue.offer("a", 1)
        assert await queue.contains("a")
        await queue.close()
        with pytest.raises(QueueClosed):
            await queue.contains("a")

    run(scenario)


def test_opening_may_be_entered_at_once(store_url: str, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with AsyncQueue.open(store_url, "orders", clock=clock) as queue:
            await queue.offer("a", {"n": 1})
            delivery = await queue.poll()
            assert isinstance(delivery, AsyncDelivery)
            async with delivery as same:
                assert same.payload == {"n": 1}
            assert not await queue.contains("a")
        with pytest.raises(QueueClosed):
            await queue.contains("a")

    run(scenario)


def test_an_awaited_queue_may_be_entered_later(store_url: str, clock: ManualClock) -> None:
    async def scenario() -> None:
        queue = await AsyncQueue.open(store_url, "orders", clock=clock)
        async with queue as same:
            assert same is queue
        with pytest.raises(QueueClosed):
            await queue.stats()

    run(scenario)


def test_a_cancelled_stop_goes_on(store_url: str, clock: ManualClock) -> None:
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def handler(_: AsyncDelivery[Any]) -> None:
        begun.set()
        await may_end.wait()

    async def scenario() -> None:
        async with AsyncQueue.open(store_url, "orders", clock=clock) as queue:
            await queue.offer("a", 1)
            consumer = queue.consume(handler)
            await begun.wait()
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(consumer.stop(HOUR), 0.01)
            again = asyncio.create_task(consumer.stop(HOUR))
            await asyncio.sleep(0)
            assert not again.done()
            may_end.set()
            await again
            assert not await queue.contains("a")

    run(scenario)


def test_a_cancelled_close_still_settles_what_was_handled(
    store_url: str, clock: ManualClock
) -> None:
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def handler(_: AsyncDelivery[Any]) -> None:
        begun.set()
        await may_end.wait()

    async def scenario() -> None:
        async with AsyncQueue.open(store_url, "orders", clock=clock) as other:
            queue = await AsyncQueue.open(store_url, "orders", clock=clock)
            await queue.offer("a", 1)
            queue.consume(handler)
            await begun.wait()
            tasks = asyncio.all_tasks()
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(queue.close(), 0.01)
            may_end.set()
            await asyncio.wait(asyncio.all_tasks() - tasks, timeout=PATIENCE)
            assert not await other.contains("a")
            with pytest.raises(QueueClosed):
                await queue.stats()

    run(scenario)


def test_a_close_that_fails_is_a_close(
    store_url: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def handler(_: AsyncDelivery[Any]) -> None: ...

    async def fail() -> None:
        raise LookupError("no way to stop")

    async def scenario() -> None:
        queue = await AsyncQueue.open(store_url, "orders", clock=clock)
        consumer = queue.consume(handler)
        monkeypatch.setattr(consumer, "stop", fail)
        with pytest.raises(LookupError, match="no way to stop"):
            await queue.close()
        with pytest.raises(QueueClosed):
            await queue.stats()

    run(scenario)


def test_a_cancelled_poll_takes_nothing_with_it(store_url: str, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with AsyncQueue.open(store_url, "orders", clock=clock) as queue:
            for n in range(10):
                polls = [asyncio.create_task(queue.poll()) for _ in range(3)]
                for _ in range(n):
                    await queue.stats()
                await cancelled(*polls)
                await queue.offer("a", n)
                delivery = await queue.try_poll()
                assert delivery is not None
                assert (delivery.attempt, await delivery.ack()) == (1, True)

    run(scenario)


def test_a_cancelled_call_leaves_the_queue_whole(store_url: str, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with AsyncQueue.open(store_url, "orders", clock=clock) as queue:
            for n in range(20):
                batch = [Message(f"{n}-{m}", m, HOUR) for m in range(50)]
                offers = [asyncio.create_task(queue.offer_batch(batch)) for _ in range(2)]
                for _ in range(n):
                    await asyncio.sleep(0)
                await cancelled(*offers)
                # Each batch is a single chunk: it is there whole or not at all.
                assert (await queue.stats()).total in (0, 50)
                await queue.drop_all("orders")

    run(scenario)


def test_a_poll_is_ended_by_the_timeout_of_its_caller(store_url: str, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with AsyncQueue.open(store_url, "orders", clock=clock, poll_interval=DAY) as queue:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await queue.poll()
            await queue.offer("a", 1)
            assert await queue.poll(timedelta(0)) is not None

    run(scenario)


def test_waiting_polls_leave_the_loop_to_others(store_url: str, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with AsyncQueue.open(store_url, "orders", clock=clock) as queue:
            waiting = [asyncio.create_task(queue.poll()) for _ in range(40)]
            await queue.offer_batch([Message(str(n), n, HOUR) for n in range(40)])
            clock.advance(HOUR)
            found = await asyncio.gather(*waiting)
            assert {one.key for one in found} == {str(n) for n in range(40)}

    run(scenario)


async def cancelled(*tasks: "asyncio.Task[Any]") -> None:
    for task in tasks:
        task.cancel()
    for outcome in await asyncio.gather(*tasks, return_exceptions=True):
        assert not isinstance(outcome, Exception)
