"""Several messages that a consumer settles in one statement."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

from duequeue import AsyncQueue, ManualClock, Message, Queue
from duequeue.consumer.settling import settle
from duequeue.consumer.workload import Done
from duequeue.contract.phrases import DAY, PATIENCE
from duequeue.flows.settling import one_lease_each
from duequeue.verdict import Released


def test_what_is_released_wakes_for_the_first_that_is_due() -> None:
    clock = ManualClock(datetime(2026, 3, 1, tzinfo=UTC))

    async def scenario() -> str:
        options: dict[str, Any] = {"clock": clock, "poll_interval": DAY}
        async with AsyncQueue[Any].open("memory:", "orders", **options) as queue:
            await queue.offer_batch([Message(key, 1) for key in "ab"])
            soon, late = await queue.try_poll_many(2)
            waiting = asyncio.create_task(queue.poll())
            # It falls asleep at once, because in memory, and on one loop, nothing takes time.
            await asyncio.sleep(0)
            done = [Done(soon, Released(timedelta(0))), Done(late, Released(DAY / 2))]
            # A consumer settles like this, whenever it likes.
            await queue._drive(settle(queue._context, done))  # noqa: SLF001
            found = await asyncio.wait_for(waiting, PATIENCE)
            assert found is not None
            return found.key

    assert asyncio.run(scenario()) == "a"


def test_several_leases_of_one_message_are_settled_one_after_the_other() -> None:
    assert one_lease_each([], []) == []
    assert one_lease_each(["a", "b"], [1, 2]) == [["a", "b"]]
    assert one_lease_each(["old", "b", "new", "older"], [1, 2, 1, 1]) == [
        ["older", "b"],
        ["new"],
        ["old"],
    ]
    assert len(one_lease_each([*range(5000)], [7] * 5000)) == 5000


def test_releases_that_are_lost_wake_nobody() -> None:
    with Queue[Any].open("memory:", "orders") as queue:
        queue.offer("a", 1)
        delivery = queue.try_poll()
        assert delivery is not None
        assert delivery.ack()
        rings: list[int | None] = []
        queue._context.bell.inform(rings.append)  # noqa: SLF001 - nothing else shows who was woken
        done = [Done(delivery, Released(timedelta(0)))]
        queue._drive(settle(queue._context, done))  # noqa: SLF001
        assert rings == []
