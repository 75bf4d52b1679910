"""`@queue.handler`: still the function, and a consumer when asked for."""

import asyncio
import threading
from functools import partial, wraps
from typing import Any
from unittest.mock import AsyncMock

import pytest

from duequeue import AsyncConsumer, AsyncDelivery, AsyncQueue, Consumer, Delivery, Message, Queue
from duequeue.contract.faces import QueueFace
from duequeue.contract.fixtures import Consume
from duequeue.contract.phrases import PATIENCE, PickyCodec
from duequeue.contract.stage import until


def test_a_bare_decorator(store_url: str) -> None:
    with Queue[Any].open(store_url, "orders") as queue:
        handled = threading.Event()

        @queue.handler
        def charge(delivery: Delivery[Any]) -> str:
            """Charge a card."""
            handled.set()
            return f"charged {delivery.key}"

        assert charge.__doc__ == "Charge a card."
        assert repr(charge).endswith(".charge>")
        queue.offer("a", 1)
        delivery = queue.try_poll()
        assert delivery is not None
        assert charge(delivery) == "charged a"
        assert delivery.release()
        handled.clear()
        with charge.consume() as consumer:
            assert isinstance(consumer, Consumer)
            assert handled.wait(PATIENCE)
        assert queue.stats().total == 0


def test_a_decorator_with_options(store_url: str) -> None:
    with Queue[str].open(store_url, "orders", codec=PickyCodec()) as queue:
        at_once = threading.Barrier(3)

        @queue.handler(concurrency=3, batch=3, max_attempts=1)
        def charge(delivery: Delivery[str]) -> None:
            at_once.wait(PATIENCE)
            raise LookupError(delivery.payload)

        queue.offer_batch([Message(str(n), "fine") for n in range(3)])
        with charge.consume():
            until(lambda: queue.stats().buried == 3)
        assert queue.stats().total == 0


@pytest.mark.argument_checks
def test_options_are_checked(store_url: str) -> None:
    with Queue[Any].open(store_url, "orders") as queue:
        charge = queue.handler(concurrency=0)(print)
        with pytest.raises(ValueError, match="concurrency"):
            charge.consume()
        misused: Any = queue.handler
        with pytest.raises(TypeError, match="function"):
            misused(3)
        consume: Any = queue.consume
        with pytest.raises(TypeError, match="handler must be a function of a delivery, not 'shop:"):
            consume("shop:charge")


@pytest.mark.argument_checks
def test_a_misspelt_option_is_refused_at_the_decorator(store_url: str) -> None:
    with Queue[Any].open(store_url, "orders") as opened:
        queue: Any = opened
        with pytest.raises(TypeError, match="no option 'concurency'; did you mean 'concurrency'"):
            queue.handler(concurency=3)
        with pytest.raises(TypeError, match="no option 'colour'; known are: concurrency, "):
            queue.handler(colour="red")


def test_a_queue_that_is_not_open_yet_says_how_to_open_it() -> None:
    opening: Any = AsyncQueue.open("memory:", "orders")
    with pytest.raises(AttributeError, match=r"no 'offer': use `async with AsyncQueue.open"):
        opening.offer("a", 1)


def test_on_an_event_loop(store_url: str) -> None:
    async def scenario() -> None:
        async with AsyncQueue[Any].open(store_url, "orders") as queue:
            handled = asyncio.Event()

            @queue.handler
            async def charge(delivery: AsyncDelivery[Any]) -> str:
                handled.set()
                return f"charged {delivery.key}"

            @queue.handler(concurrency=1)
            async def refund(delivery: AsyncDelivery[Any]) -> str:
                handled.set()
                return f"refunded {delivery.key}"

            for handler, word in ((charge, "charged"), (refund, "refunded")):
                await queue.offer("a", 1)
                delivery = await queue.try_poll()
                assert delivery is not None
                assert await handler(delivery) == f"{word} a"
                assert await delivery.release()
                handled.clear()
                async with handler.consume() as consumer:
                    assert isinstance(consumer, AsyncConsumer)
                    await handled.wait()
                assert (await queue.stats()).total == 0

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE))


def test_a_plain_function_is_refused_by_an_event_loop() -> None:
    def handle(delivery: object) -> None:
        raise AssertionError(delivery)

    async def produce(delivery: object) -> Any:
        yield delivery

    class Shop:
        def handle(self, delivery: object) -> None:
            raise AssertionError(delivery)

    async def scenario() -> None:
        async with AsyncQueue[Any].open("memory:", "orders") as opened:
            queue: Any = opened
            await queue.offer("a", 1)
            for handler in (handle, Shop().handle, partial(handle), produce):
                with pytest.raises(TypeError, match=r"handler must be .*`async def`.* use Queue"):
                    queue.consume(handler)
            with pytest.raises(TypeError, match="handler must be a coroutine function"):
                queue.handler(handle).consume()

    asyncio.run(scenario())


def test_whatever_may_return_an_awaitable_is_accepted_by_an_event_loop() -> None:
    handled = asyncio.Event()

    async def handle(_: Any) -> None:
        handled.set()

    @wraps(handle)
    def wrapper(delivery: Any) -> Any:
        return handle(delivery)

    @wraps(wrapper)
    async def awaiting_wrapper(delivery: Any) -> Any:
        return await wrapper(delivery)

    class Shop:
        async def handle(self, delivery: Any) -> None:
            await handle(delivery)

        __call__ = handle

    async def scenario() -> None:
        async with AsyncQueue[Any].open("memory:", "orders") as opened:
            queue: Any = opened
            for handler in (
                handle,
                wrapper,
                awaiting_wrapper,
                Shop(),
                Shop().handle,
                partial(handle),
                lambda delivery: handle(delivery),  # noqa: PLW0108 - a lambda is one of the cases
                AsyncMock(side_effect=handle),
                queue.handler(handle),
            ):
                await queue.offer("a", 1)
                async with queue.consume(handler):
                    await handled.wait()
                handled.clear()
                assert not await queue.contains("a"), handler

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE))


@pytest.mark.argument_checks
@pytest.mark.parametrize("takes", [0, 2])
def test_a_handler_with_the_wrong_number_of_arguments_is_refused_at_once(
    queue: QueueFace, takes: int
) -> None:
    def nothing() -> None:
        raise AssertionError

    def two(delivery: object, total: object) -> None:
        raise AssertionError(delivery, total)

    handler: Any = two if takes else nothing
    shown = "delivery, total" if takes else "nothing"
    decorate: Any = queue
    for use in (decorate.consume, decorate.handler, decorate.handler(concurrency=1)):
        with pytest.raises(TypeError, match=f"must accept one argument.* but it takes {shown}"):
            use(handler)


def test_a_decorator_may_supply_the_other_arguments(queue: QueueFace, consume: Consume) -> None:
    handled: list[object] = []

    def charge(delivery: Any, total: int) -> None:
        handled.append((delivery.key, total))

    @wraps(charge)
    def with_total(delivery: Any) -> None:
        charge(delivery, 40)

    queue.offer("a", 1)
    consume(queue, with_total)
    until(lambda: handled == [("a", 40)])


def test_a_handler_of_a_queue_that_is_not_open_yet_is_for_a_worker() -> None:
    @AsyncQueue.open("memory:", "orders").handler(concurrency=2)
    async def charge(delivery: AsyncDelivery[Any]) -> str:
        return "charged"

    assert charge.options == {"concurrency": 2}
    assert charge.opening is not None
    assert charge.opening.name == "orders"
    with pytest.raises(RuntimeError, match="run this handler with `duequeue worker`"):
        charge.consume()


def test_a_handler_without_an_awaitable_is_a_clear_failure() -> None:
    async def scenario() -> None:
        async with AsyncQueue[Any].open("memory:", "orders") as opened:
            queue: Any = opened
            await queue.offer("a", 1)
            buried = asyncio.Event()

            async def notice(_: Any) -> None:
                buried.set()

            async with queue.consume(lambda _: None, max_attempts=1, on_buried=notice):
                await asyncio.wait_for(buried.wait(), 30)
            (burial,) = await queue.buried(10)
            assert "the handler returned NoneType, which cannot be awaited" in burial.reason

    asyncio.run(scenario())
