"""Deliveries for unit tests of handlers, and draining with the wrong kind of function."""

import asyncio
import gc
import weakref
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

import duequeue
from duequeue import AsyncDelivery, AsyncQueue, Delivery, ManualClock, Outcome, Queue, Retry
from duequeue.testing import async_delivery, async_drain, delivery, drain

HOUR = timedelta(hours=1)


@dataclass
class Order:
    number: int


def ship(given: Delivery[Order]) -> None:
    """Stand for a handler of the user's."""
    if given.payload.number < 0:
        given.bury("not an order")
    elif given.attempt < 3:
        raise Retry(given.attempt * HOUR)
    else:
        given.ack()


def test_it_is_a_delivery_like_any_other() -> None:
    order = Order(7)
    found = delivery("order-7", order, headers={"tenant": "seven"}, queue_name="orders")
    assert isinstance(found, Delivery)
    assert (found.key, found.attempt, found.redelivered) == ("order-7", 1, False)
    assert found.payload is order
    assert (found.queue_name, found.headers) == ("orders", {"tenant": "seven"})
    assert found.delivered_at < found.lease_until
    assert found.extend(HOUR)
    assert found.lease_until - found.delivered_at == HOUR


@pytest.mark.parametrize("attempt", [1, 2, 25])
def test_any_attempt(attempt: int) -> None:
    found = delivery("order-7", {"total": 7}, attempt)
    assert (found.attempt, found.redelivered) == (attempt, attempt > 1)
    assert found.ack()
    assert not found.ack()


def test_what_a_handler_did_can_be_asserted() -> None:
    acked = delivery("order-7", Order(7), attempt=3)
    ship(acked)
    assert acked.settled
    assert acked.queue.history()[0].outcome is Outcome.ACKED
    assert not acked.queue.contains("order-7")

    buried = delivery("order-8", Order(-8))
    ship(buried)
    assert buried.queue.buried(1)[0].reason == "not an order"

    with pytest.raises(Retry) as retried:
        ship(delivery("order-9", Order(9), attempt=2))
    assert retried.value.delay == 2 * HOUR


def test_a_release_is_seen_on_the_given_clock() -> None:
    clock = ManualClock(datetime(2026, 3, 1, tzinfo=UTC))
    found = delivery("order-7", 7, clock=clock)
    assert found.delivered_at == clock.now()
    assert found.release(HOUR)
    assert found.queue.try_poll() is None
    clock.advance(HOUR)
    assert found.queue.poll().attempt == 2


def test_deliveries_have_nothing_in_common() -> None:
    one, other = delivery("order-7", 7), delivery("order-7", 8)
    assert one.ack()
    assert other.queue.contains("order-7")


def test_its_queue_ends_with_it() -> None:
    found = delivery("order-7", 7)
    queue = weakref.ref(found.queue)
    del found
    gc.collect()
    assert queue() is None


@pytest.mark.parametrize("attempt", [0, -1, 1.0, True, "1"])
def test_an_attempt_is_a_number_from_1_on(attempt: Any) -> None:
    with pytest.raises(ValueError, match="attempt must be a whole number above 0"):
        delivery("order-7", 7, attempt)
    with pytest.raises(ValueError, match="attempt must be a whole number above 0"):
        asyncio.run(async_delivery("order-7", 7, attempt))


def test_a_bad_key_is_refused() -> None:
    with pytest.raises(ValueError, match="key"):
        delivery("", 7)


def test_an_awaited_delivery() -> None:
    async def scenario() -> None:
        order = Order(7)
        found = await async_delivery("order-7", order, 3, headers={"tenant": "seven"})
        assert isinstance(found, AsyncDelivery)
        assert (found.key, found.attempt, found.headers) == ("order-7", 3, {"tenant": "seven"})
        assert found.payload is order
        assert await found.bury("not ours")
        assert (await found.queue.buried(1))[0].reason == "not ours"
        assert not await found.ack()

    asyncio.run(scenario())


def test_drain_refuses_a_coroutine_function() -> None:
    async def handler(_: Delivery[int]) -> None:
        pass

    with Queue.open("memory:drain", "orders") as queue:
        queue.offer("order-7", 7)
        with pytest.raises(TypeError, match="use async_drain"):
            drain(queue, handler)


def test_async_drain_refuses_a_plain_function() -> None:
    def handler(_: object) -> None:
        pass

    async def scenario() -> None:
        async with AsyncQueue.open("memory:drain", "orders") as queue:
            with pytest.raises(TypeError, match="use Queue for plain functions"):
                await async_drain(queue, cast("Any", handler))

    asyncio.run(scenario())


def test_it_is_there_without_another_import() -> None:
    assert duequeue.testing.delivery is delivery
