"""How a push process extends leases."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from duequeue import ManualClock
from duequeue.callbacks.answer import CallAnswer
from duequeue.callbacks.endpoint import Endpoint
from duequeue.callbacks.lease_keeper import Held, LeaseKeeper
from duequeue.callbacks.queue_push import QueuePush
from duequeue.callbacks.rate import Slots
from duequeue.callbacks.records import StoredEndpoint
from duequeue.callbacks.signing import new_keys
from duequeue.drive.actions import Run
from duequeue.drive.steps import drive_async
from duequeue.parts import AsyncParts
from duequeue.port.store import Extended
from tests.callbacks.pushed import SECRET
from tests.callbacks.test_settler import leased, until, with_queue

KEPT = timedelta(minutes=10)


async def let_run() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def test_a_regular_extension_does_not_replace_the_one_that_the_receiver_asked_for() -> None:
    async def check(opened: AsyncParts[bytes], clock: ManualClock) -> None:
        began, go_on = asyncio.Event(), asyncio.Event()

        async def perform(action: Any) -> object:
            if not began.is_set():  # the regular one is slow to reach the store
                began.set()
                await go_on.wait()
            return await opened.perform(action)

        async def drive(flow: Any) -> Any:
            return await drive_async(flow, perform)

        def on_lost(message: Held) -> None:
            raise AssertionError(message)

        [message] = await leased(opened, 1)
        keeper = LeaseKeeper(lambda: opened.context, drive, lambda: [message], on_lost)
        await asyncio.sleep(0)
        clock.advance(timedelta(seconds=30))  # half of the lease
        await began.wait()
        asked = asyncio.create_task(keeper.extend_once(message, KEPT))
        await let_run()
        go_on.set()
        await asked
        await let_run()
        await keeper.close()
        stored = await opened.queue.read("0")
        assert stored is not None
        assert stored.leased_until == clock.now() + KEPT

    asyncio.run(with_queue(check))


class HangingPoster:
    """A poster whose calls end when the test says so."""

    def __init__(self) -> None:
        self.called, self.go_on = asyncio.Event(), asyncio.Event()
        self.keys: list[str] = []

    async def post(self, _: str, __: bytes, headers: Mapping[str, str], ___: object) -> CallAnswer:
        self.keys.append(headers["duequeue-key"])
        self.called.set()
        await self.go_on.wait()
        return CallAnswer(200, {}, b"")


async def no_look() -> None:
    raise AssertionError("every message has an endpoint")


def test_a_message_leased_while_the_timeout_becomes_longer_gets_the_longer_lease() -> None:
    async def check(opened: AsyncParts[bytes], clock: ManualClock) -> None:
        began, go_on = asyncio.Event(), asyncio.Event()

        async def perform(action: Any) -> object:
            if (
                isinstance(action, Run) and not began.is_set()
            ):  # the poll is slow to reach the store
                began.set()
                await go_on.wait()
            return await original(action)

        original, opened.perform = opened.perform, perform
        await opened.queue.offer("0", b"1")
        poster: Any = HangingPoster()
        endpoint = Endpoint(id="shop", queue="orders", url="http://127.0.0.1/", timeout=30_000)
        entry, slots = StoredEndpoint(endpoint, new_keys(SECRET)), Slots(1)
        push = QueuePush(opened, poster, slots, [entry], look=no_look, on_change=lambda _: None)
        await began.wait()
        push.update([entry._replace(endpoint=replace(endpoint, timeout=600_000))])
        await let_run()  # so that the keeper waits for a third of the longer lease
        go_on.set()
        await poster.called.wait()
        await let_run()
        stored = await opened.queue.read("0")
        await push.stop(0)
        assert stored is not None
        assert stored.leased_until == clock.now() + timedelta(seconds=615)

    asyncio.run(with_queue(check))


def test_a_lease_that_is_lost_before_its_call_begins_holds_up_no_other_call() -> None:
    async def check(opened: AsyncParts[bytes], clock: ManualClock) -> None:
        extended, go_on = asyncio.Event(), asyncio.Event()

        async def perform(action: Any) -> object:
            result = await original(action)
            if isinstance(result, tuple) and isinstance(result[0], Extended):
                extended.set()  # the answer of the store is slow to come back
                await go_on.wait()
            return result

        original, opened.perform = opened.perform, perform
        poster: Any = HangingPoster()
        endpoint = Endpoint(id="shop", queue="orders", url="http://127.0.0.1/")
        entry, slots = StoredEndpoint(endpoint, new_keys(SECRET)), Slots(1)
        for key in ("0", "1"):
            await opened.queue.offer(key, b"1")
        push = QueuePush(opened, poster, slots, [entry], look=no_look, on_change=lambda _: None)
        await poster.called.wait()
        await opened.queue.drop("1")
        clock.advance(timedelta(seconds=30))
        await extended.wait()
        # The first call ends, so the second one begins, and then its lease turns out to be lost.
        poster.go_on.set()
        go_on.set()
        await let_run()
        await opened.queue.offer("2", b"1")
        await until(lambda: is_empty(opened))
        await push.stop(0)
        assert poster.keys == ["0", "2"]

    asyncio.run(with_queue(check))


async def is_empty(opened: AsyncParts[bytes]) -> bool:
    return (await opened.queue.stats()).total == 0
