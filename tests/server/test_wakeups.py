"""The wake-ups of clients that wait by themselves, with rings at the worst moments."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from duequeue.port import remote
from duequeue.port.remote import WakeUp, WakeUpCall
from duequeue.server import Limits, app_for
from duequeue.server.access import ANYBODY
from duequeue.server.queues import ServedQueue
from duequeue.server.wakeups import REMEMBERED, Ring, Waiter


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[ServedQueue]:
    service = app_for(url)
    try:
        yield await service.queues.get("q", "json")
    finally:
        await service.close()


class WaiterThat(Waiter):
    """A waiter during whose look something happens, as other threads may make it happen."""

    def __init__(self, do: Callable[[], None]) -> None:
        super().__init__("me")
        self._do = do

    def heeds(self, ring: Ring) -> bool:
        self._do()
        return super().heeds(ring)


def test_a_ring_during_a_look_is_found_by_the_next_look() -> None:
    async def look() -> tuple[WakeUp, WakeUp]:
        async with opened("memory:ring-during-look") as queue:
            wake_ups, bell = queue.wake_ups, queue.context.bell
            before = wake_ups.since("", 0, Waiter("me"))
            bell.ring(1)
            waiter = WaiterThat(lambda: bell.ring(2))
            first = wake_ups.since(before.source, before.heard, waiter)
            return first, wake_ups.since(first.source, first.heard, Waiter("me"))

    first, second = asyncio.run(look())
    assert (first.rang, first.due_at) == (True, 1)
    assert (second.rang, second.due_at) == (True, 2)


def test_a_ring_between_a_look_and_a_wait_ends_the_wait() -> None:
    async def look_and_wait() -> bool:
        async with opened("memory:ring-before-wait") as queue:
            wake_ups, waiter = queue.wake_ups, Waiter("me")
            with wake_ups.heard_by(waiter):
                before = wake_ups.since("", 0, waiter)
                assert not wake_ups.since(before.source, before.heard, waiter).rang
                queue.context.bell.ring(1)
                await wake_ups.wait(waiter, 60)
                return waiter.woken.is_set()

    assert asyncio.run(look_and_wait())


@pytest.mark.parametrize(("others", "due_at"), [(REMEMBERED - 1, 1), (REMEMBERED, None)])
def test_a_client_that_has_missed_too_many_rings_looks_at_once(
    others: int, due_at: int | None
) -> None:
    async def miss() -> WakeUp:
        async with opened(f"memory:missed-{others}") as queue:
            wake_ups, waiter = queue.wake_ups, Waiter("me")
            before = wake_ups.since("", 0, waiter)
            for instant in (1, *[2] * others):
                queue.context.bell.ring(instant)
            return wake_ups.since(before.source, before.heard, waiter)

    found = asyncio.run(miss())
    assert (found.rang, found.due_at) == (True, due_at)


def test_a_client_that_may_not_wait_is_not_listened_to_any_more() -> None:
    async def refused() -> tuple[int, bool]:
        service = app_for("memory:refused-wait", trusted=True, limits=Limits(waiters=1))
        queue = await service.queues.get("q", "json")
        known = queue.wake_ups.since("", 0, Waiter("me"))
        call = WakeUpCall("q", "json", "me", 60, known.source, known.heard)
        bodies = [{"type": "http.request", "body": remote.encode(call)}]
        sent: list[Any] = []
        listening: list[asyncio.Future[Any]] = []

        def receive() -> Awaitable[Any]:
            listening.append(asyncio.get_running_loop().create_future())
            if bodies:
                listening[-1].set_result(bodies.pop())
            return listening[-1]

        async def send(message: Any) -> None:
            sent.append(message)

        path = "/v1/port:wait"
        scope = {"type": "http", "method": "POST", "path": path, "headers": [], "query_string": b""}
        with service.live.waiting(Waiter("other"), ANYBODY):
            await service(scope, receive, send)
        await service.close()
        return sent[0]["status"], listening[-1].cancelled()

    assert asyncio.run(refused()) == (429, True)


def test_a_queue_that_was_closed_hears_no_more_rings() -> None:
    async def close_and_ring() -> tuple[WakeUp, WakeUp]:
        async with opened("memory:closed-wake-ups") as queue:
            wake_ups, waiter = queue.wake_ups, Waiter("me")
            before = wake_ups.since("", 0, waiter)
        queue.context.bell.ring(1)
        queue.context.awaited.ring(["a"])
        return before, wake_ups.since("", 0, waiter)

    before, after = asyncio.run(close_and_ring())
    assert before == after
