"""How a push process extends leases."""

import asyncio
from datetime import timedelta
from typing import Any

from duequeue import ManualClock
from duequeue.callbacks.held import Held
from duequeue.callbacks.lease_keeper import LeaseKeeper
from duequeue.callbacks.opened_queue import OpenedQueue
from duequeue.drive.steps import drive_async
from tests.callbacks.test_settler import leased, with_queue

KEPT = timedelta(minutes=10)


async def let_run() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def test_a_regular_extension_does_not_replace_the_one_that_the_receiver_asked_for() -> None:
    async def check(opened: OpenedQueue, clock: ManualClock) -> None:
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
