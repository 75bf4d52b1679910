"""How a push process settles what the store refuses, and how much it lets wait."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from duequeue import ManualClock
from duequeue.callbacks import lanes
from duequeue.callbacks.endpoint import Endpoint
from duequeue.callbacks.held import Held
from duequeue.callbacks.lanes import Lanes
from duequeue.callbacks.opened_queue import OpenedQueue, StoreSettings
from duequeue.callbacks.records import Entry
from duequeue.callbacks.settler import Settler
from duequeue.callbacks.signing_keys import new_keys
from duequeue.drive.steps import drive_async
from duequeue.errors import StoreError
from duequeue.flows import polling
from duequeue.payloads.stored_bytes import StoredBytes
from duequeue.verdict import ACKED, Parked
from tests.callbacks.pushed import PATIENCE, SECRET, START, memory_url

Check = Callable[[OpenedQueue, ManualClock], Any]


async def with_queue(check: Check) -> None:
    clock = ManualClock(START)
    settings = StoreSettings(memory_url(), clock)
    opened = await OpenedQueue.open(settings, "orders", StoredBytes("json"), history=False)
    try:
        await check(opened, clock)
    finally:
        await opened.close()


async def leased(opened: OpenedQueue, count: int) -> list[Held]:
    for number in range(count):
        await opened.queue.offer(str(number), b"1")
    wrap = partial(Held, "orders")
    flow = polling.poll_many(opened.context, wrap, count, 0)
    return list(await drive_async(flow, opened.perform))


def test_a_single_endpoint_gets_no_more_bytes_than_may_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def check(opened: OpenedQueue, _: ManualClock) -> None:
        endpoint = Endpoint(id="shop", queue="orders", url="http://127.0.0.1/")
        found, now = Lanes(), opened.context.now()
        found.update([Entry(endpoint, new_keys(SECRET))], now)
        for message in await leased(opened, 2):
            lane = found.lane_of(message)
            assert lane is not None
            found.add(lane, message)
        assert found.room(now) > 0
        monkeypatch.setattr(lanes, "MOST_BYTES", 2)
        assert found.room(now) == 0

    asyncio.run(with_queue(check))


class RefusesAcks:
    """A store that refuses acks, as long as it should."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.refusing = True
        self.refused = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def ack(self, *given: Any) -> Any:
        if self.refusing:
            self.refused += 1
            raise StoreError("by a test")
        return self._store.ack(*given)


class CountedSettler(Settler):
    """A settler whose rounds a test can wait for."""

    def __init__(self, *given: Any) -> None:
        self.rounds = asyncio.Semaphore(0)
        super().__init__(*given)

    async def round_is_over(self) -> None:
        async with asyncio.timeout(PATIENCE):
            await self.rounds.acquire()

    async def _settle(self) -> None:
        await super()._settle()
        self.rounds.release()


async def refused_ack(opened: OpenedQueue) -> tuple[CountedSettler, RefusesAcks]:
    """Return a settler that is to ack 0, bury 1 and give 2 back, after the ack was refused."""
    ack, bury, back = await leased(opened, 3)
    store = RefusesAcks(opened.context.store)
    context: Any = replace(opened.context, store=store)
    settler = CountedSettler(context, lambda flow: drive_async(flow, opened.perform))
    settler.add(ack, ACKED, 1000)
    settler.add(bury, Parked("by a test"), 1000)
    settler.give_back([back])
    await settler.round_is_over()
    assert store.refused == 1
    return settler, store


def test_what_the_store_refuses_keeps_nothing_else_waiting() -> None:
    async def check(opened: OpenedQueue, _: ManualClock) -> None:
        settler, store = await refused_ack(opened)
        left = {each.key: each.leased_until for each in (await opened.queue.list()).messages}
        assert left.keys() == {"0", "2"}
        assert left["0"] is not None
        assert left["2"] is None
        store.refusing = False
        await settler.close()
        assert [each.key for each in (await opened.queue.list()).messages] == ["2"]

    asyncio.run(with_queue(check))


def test_a_verdict_is_not_tried_again_after_the_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("duequeue.callbacks.settler.PAUSE_SECONDS", 3600)  # the test says when

    async def check(opened: OpenedQueue, clock: ManualClock) -> None:
        settler, store = await refused_ack(opened)
        clock.advance(timedelta(minutes=2))
        settler._try_again()  # noqa: SLF001 - which time does
        await settler.round_is_over()
        assert store.refused == 2
        await settler.close()
        assert store.refused == 2

    asyncio.run(with_queue(check))
