"""A task that is cancelled while it claims gives back what the server has leased to it."""

import asyncio
from functools import partial
from typing import Any

import pytest

from duequeue import AsyncQueue, Message
from duequeue.contract.phrases import DAY, MINUTE, PATIENCE
from duequeue.contract.stage import until
from tests.fixtures.redis_server import RedisServer
from tests.race.crew import Hand
from tests.redis.structure import check_structure
from tests.redis.waiting import LEASED, LISTENERS, offer_in_silence, poll_once


@pytest.mark.parametrize("turns", range(8))
def test_cancelled_after_some_turns_of_the_loop(
    redis_server: RedisServer, redis_url: str, turns: int
) -> None:
    async def scenario() -> None:
        options: dict[str, Any] = {"lease": DAY, "poll_interval": DAY}
        async with AsyncQueue.open(redis_url, "orders", **options) as queue:
            await queue.offer_batch([Message(str(number), 1) for number in range(20)])
            for _ in range(10):
                claiming = asyncio.create_task(queue.try_poll_many(20))
                for _ in range(turns):
                    await asyncio.sleep(0)
                claiming.cancel()
                await asyncio.wait([claiming])
                if claiming.cancelled():
                    stats = await queue.stats()
                    assert (stats.due, stats.leased) == (20, 0)
                else:
                    for delivery in claiming.result():
                        assert await delivery.release()
            found = await queue.try_poll_many(20)
            assert len(found) == 20
            assert await queue.ack_many(found) == 20

    asyncio.run(scenario())
    with redis_server.client(int(redis_url.rpartition("/")[2])) as client:
        assert check_structure(client, "orders|json") == 0


def test_only_its_own_claim_is_undone(redis_url: str) -> None:
    async def scenario() -> None:
        async with AsyncQueue.open(redis_url, "orders", lease=DAY) as queue:
            await queue.offer_batch([Message(str(number), 1) for number in range(10)])
            in_hand = 0
            for _ in range(5):
                kept = asyncio.create_task(queue.try_poll_many(1))
                cancelled = asyncio.create_task(queue.try_poll_many(1))
                for _ in range(3):
                    await asyncio.sleep(0)
                cancelled.cancel()
                (delivery,) = await kept
                await asyncio.wait([cancelled])
                assert await delivery.ack()
                in_hand += 0 if cancelled.cancelled() else len(cancelled.result())
            assert (await queue.stats()).leased == in_hand

    asyncio.run(scenario())


async def claim_and_cancel(queue: AsyncQueue[Any], client: Any) -> None:
    """Cancel a claim that the server has run, before its answer is read."""
    claiming = asyncio.create_task(queue.try_poll_many(1))
    for _ in iter(lambda: client.zcard(LEASED), 1):
        await asyncio.sleep(0)
    claiming.cancel()
    await asyncio.wait([claiming])
    assert claiming.cancelled()


def test_a_message_that_was_delivered_before_is_given_back(
    redis_server: RedisServer, redis_url: str
) -> None:
    async def scenario(client: Any) -> None:
        async with AsyncQueue.open(redis_url, "orders", lease=DAY) as queue:
            await queue.offer("a", 1)
            delivery = await queue.try_poll()
            assert delivery is not None
            assert await delivery.release()
            await claim_and_cancel(queue, client)
            again = await queue.try_poll()
            assert again is not None
            assert again.attempt == 2
            assert await again.ack()

    with redis_server.client(int(redis_url.rpartition("/")[2])) as client:
        asyncio.run(scenario(client))


def test_what_is_given_back_is_found_by_a_poll_of_the_same_process(
    redis_server: RedisServer, redis_url: str
) -> None:
    async def scenario(client: Any) -> str:
        options: dict[str, Any] = {"lease": DAY, "poll_interval": 10 * MINUTE}
        async with AsyncQueue.open(redis_url, "orders", **options) as queue:
            polling = asyncio.create_task(queue.poll())
            await asyncio.to_thread(until, lambda: client.scard(LISTENERS) == 1)
            await asyncio.to_thread(offer_in_silence, redis_url, "a")
            await claim_and_cancel(queue, client)
            delivery = await asyncio.wait_for(polling, PATIENCE)
            assert delivery is not None
            return delivery.key

    with redis_server.client(int(redis_url.rpartition("/")[2])) as client:
        assert asyncio.run(scenario(client)) == "a"


def test_what_is_given_back_wakes_another_process(
    redis_server: RedisServer, redis_url: str
) -> None:
    async def scenario(client: Any) -> None:
        async with AsyncQueue.open(redis_url, "orders", lease=DAY) as queue:
            await claim_and_cancel(queue, client)

    hand = Hand()
    try:
        with redis_server.client(int(redis_url.rpartition("/")[2])) as client:
            hand.start(partial(poll_once, redis_url))
            until(lambda: client.scard(LISTENERS) == 1)
            offer_in_silence(redis_url, "a")
            asyncio.run(scenario(client))
        assert hand.outcome().value == "a"
    finally:
        hand.end()
