"""How a push process settles what the store refuses, and how much it lets wait."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import repeat
from typing import Any

import pytest

from duequeue import ManualClock
from duequeue.callbacks.endpoint import Endpoint
from duequeue.callbacks.lanes import Lanes
from duequeue.callbacks.lease_keeper import Held
from duequeue.callbacks.records import StoredEndpoint
from duequeue.callbacks.settlement import Settler
from duequeue.callbacks.signing import new_keys
from duequeue.drive.steps import drive_async
from duequeue.errors import StoreError
from duequeue.flows import polling
from duequeue.parts import AsyncParts, QueueSettings
from duequeue.payloads.stored_bytes import StoredBytes
from duequeue.verdict import ACKED, Parked
from tests.callbacks.movable_loop import MovableLoop, let_pass
from tests.callbacks.pushed import PATIENCE, SECRET, START, memory_url
from tests.fixtures.watched import Watch

Check = Callable[[AsyncParts[bytes], ManualClock], Any]


async def with_queue(check: Check) -> None:
    clock = ManualClock(START)
    settings = QueueSettings(memory_url(), clock, history=False)
    opened = await settings.open("orders", StoredBytes("json"))
    try:
        await check(opened, clock)
    finally:
        await opened.close()


async def leased(opened: AsyncParts[bytes], count: int) -> list[Held]:
    for number in range(count):
        await opened.queue.offer(str(number), b"1")
    wrap = partial(Held, "orders")
    flow = polling.poll_many(opened.context, wrap, count, 0)
    return list(await drive_async(flow, opened.perform))


@pytest.mark.parametrize("limit", ["most_waiting", "most_bytes"])
def test_a_single_endpoint_gets_no_more_than_may_wait(limit: str) -> None:
    async def check(opened: AsyncParts[bytes], _: ManualClock) -> None:
        endpoint = Endpoint(id="shop", queue="orders", url="http://127.0.0.1/")
        found, now = Lanes(**{limit: 2}), opened.context.now()
        found.update([StoredEndpoint(endpoint, new_keys(SECRET))], now)
        rooms = []
        messages = await leased(opened, 2)
        for message in messages:
            lane = found.lane_of(message)
            assert lane is not None
            found.add(lane, message)
            rooms.append(found.room(now))
        assert [room > 0 for room in rooms] == [True, False]
        found.remove(messages[0])
        assert found.room(now) == rooms[0]

    asyncio.run(with_queue(check))


def watched(opened: AsyncParts[bytes], watch: Watch) -> Settler:
    """Return a settler of a store that is watched."""
    store = watch.around("orders", opened.context.store)
    context = replace(opened.context, store=store)
    return Settler(context, lambda flow: drive_async(flow, opened.perform))


async def until(is_true: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not await is_true():  # noqa: ASYNC110 - the store sets no event
            await asyncio.sleep(0.001)


def test_what_the_store_refuses_keeps_nothing_else_waiting() -> None:
    async def check(opened: AsyncParts[bytes], _: ManualClock) -> None:
        watch = Watch()
        watch.refuse("ack", repeat(StoreError("by a test")))
        settler = watched(opened, watch)
        ack, bury, back = await leased(opened, 3)
        settler.add(ack, ACKED, 1000)
        settler.add(bury, Parked("by a test"), 1000)
        settler.give_back([back])

        async def others_are_settled() -> bool:
            left = {each.key: each.leased_until for each in (await opened.queue.list()).messages}
            assert left["0"] is not None
            return left == {"0": left["0"], "2": None}

        await until(others_are_settled)
        assert watch.count("ack") > 0
        watch.accept("ack")
        await settler.close()
        assert [each.key for each in (await opened.queue.list()).messages] == ["2"]

    asyncio.run(with_queue(check))


def test_a_verdict_is_not_tried_again_after_the_lease() -> None:
    async def check(opened: AsyncParts[bytes], clock: ManualClock) -> None:
        watch = Watch()

        def refusals() -> Iterator[StoreError]:
            yield StoreError("while the lease lasts")
            clock.advance(timedelta(minutes=2))
            yield StoreError("after the lease")

        watch.refuse("ack", refusals())
        settler = watched(opened, watch)
        (message,) = await leased(opened, 1)
        settler.add(message, ACKED, 1000)
        for count in (1, 2):
            await until(lambda count=count: was_asked(watch, count))  # type: ignore[misc]
            await let_pass(2)
        await settler.close()
        assert watch.count("ack") == 2

    with asyncio.Runner(loop_factory=MovableLoop) as runner:
        runner.run(with_queue(check))


async def was_asked(watch: Watch, count: int) -> bool:
    return watch.count("ack") >= count
