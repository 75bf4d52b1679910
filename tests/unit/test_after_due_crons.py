"""Only queues with a clock that is moved by hand run due crons before each call."""

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from duequeue import AsyncQueue, Clock, ManualClock, SystemClock
from duequeue.contract.faces import Face
from duequeue.contract.parts import open_parts
from duequeue.cron import scheduler, scheduler_async
from duequeue.drive.actions import Action
from duequeue.flows.context import Context


def perform(_: Action) -> object:
    raise NotImplementedError


async def perform_awaiting(_: Action) -> object:
    raise NotImplementedError


def is_changed(context: Context[Any]) -> set[bool]:
    return {
        scheduler.after_due_crons(perform, context) is not perform,
        scheduler_async.after_due_crons(perform_awaiting, context) is not perform_awaiting,
    }


@pytest.fixture
def context(request: pytest.FixtureRequest) -> Iterator[Context[Any]]:
    clock: Clock = request.param
    parts = open_parts("memory:due-crons", clock=clock)
    with parts.queue:
        yield parts.context


@pytest.mark.parametrize("context", [SystemClock()], indirect=True)
def test_other_clocks_cost_nothing(context: Context[Any]) -> None:
    assert is_changed(context) == {False}


@pytest.mark.parametrize("context", [ManualClock(datetime(2026, 3, 1, tzinfo=UTC))], indirect=True)
def test_nothing_is_run_inside_a_transaction(context: Context[Any]) -> None:
    assert is_changed(context) == {True}
    assert is_changed(context.borrowed(context.store)) == {False}


class Watched(ManualClock):
    """A clock that counts who listens to it."""

    def __init__(self, start: datetime) -> None:
        super().__init__(start)
        self.listeners = 0

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        self.listeners += 1
        unsubscribe = super().subscribe(listener)

        def leave() -> None:
            self.listeners -= 1
            unsubscribe()

        return leave


def test_the_clock_forgets_a_cron_that_has_ended(face: Face) -> None:
    clock = Watched(datetime(2026, 3, 1, tzinfo=UTC))
    with face.open("memory:", "orders", clock=clock) as queue:
        handle = queue.cron.install_periodic_tick("reports", timedelta(minutes=1), "hello")
        assert clock.listeners == 1
        handle.close()
        assert clock.listeners == 0


def test_a_cancelled_call_leaves_the_cron_to_the_next_one() -> None:
    async def scenario() -> None:
        clock = ManualClock(datetime(2026, 3, 1, tzinfo=UTC))
        async with AsyncQueue.open("memory:cancelled", "orders", clock=clock) as queue:
            minute = clock.now().replace(minute=1) - clock.now()
            await queue.cron.install_periodic_tick("reports", minute, "hello")
            for _ in range(20):
                clock.advance(minute)
                call = asyncio.create_task(queue.stats())
                await asyncio.sleep(0)
                call.cancel()
                found = await queue.poll()
                assert found.due_at == clock.now()
                assert await found.ack()

    asyncio.run(scenario())
