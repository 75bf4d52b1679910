"""One thread, or one task, for all crons: it begins with the first and ends with the last."""

import asyncio
import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from queue import SimpleQueue
from typing import Any

import pytest

from duequeue import (
    AsyncQueue,
    Daily,
    Every,
    ManualClock,
    QueueClosed,
)
from duequeue.contract.cron_phrases import (
    ONE,
    TWO,
    assert_holds,
    eventually,
    messages,
    periodic_keys,
)
from duequeue.contract.faces import CronHandleFace, Face, QueueFace
from duequeue.contract.fixtures import START, OpenQueue
from duequeue.contract.phrases import DAY, HOUR, MINUTE, PATIENCE


def test_a_closed_cron_leaves_its_ticks_and_makes_no_more(
    queue: QueueFace, clock: ManualClock
) -> None:
    with queue.cron.install_periodic_tick("reports", MINUTE, "hello") as handle:
        assert handle.active
    assert not handle.active
    handle.close()
    clock.advance(3 * MINUTE)
    handle.refresh()
    assert_holds(queue, periodic_keys(1, 2, 3, 4))


def test_closing_the_queue_stops_its_crons(open_queue: OpenQueue, clock: ManualClock) -> None:
    queue, other = open_queue(), open_queue()
    handle = queue.cron.install_periodic_tick("reports", MINUTE, "hello")
    spared = other.cron.install_periodic_tick("spared", MINUTE, "hello")
    queue.close()
    assert (handle.active, spared.active) == (False, True)
    handle.close()
    clock.advance(MINUTE)
    handle.refresh()
    spared.refresh()
    assert_holds(other, periodic_keys(1, 2, 3, 4) + periodic_keys(1, 2, 3, 4, 5, prefix="spared"))


def test_a_closed_queue_refuses_every_call_to_its_crons(queue: QueueFace) -> None:
    queue.close()
    calls: list[Callable[[], object]] = [
        lambda: queue.cron.install_tick(ONE, "reports", messages(1)),
        lambda: queue.cron.uninstall_tick(ONE, "reports"),
        lambda: queue.cron.install(ONE, "reports", HOUR, lambda _: []),
        lambda: queue.cron.install_periodic_tick("reports", MINUTE, 1),
        lambda: queue.cron.install_daily_schedule("reports", Daily(["07:00"]), 1),
        lambda: queue.cron.install_schedule("reports", Every(MINUTE), 1),
        lambda: queue.cron.pause("reports"),
        lambda: queue.cron.resume("reports"),
        queue.cron.list,
    ]
    for call in calls:
        with pytest.raises(QueueClosed):
            call()


def test_a_cron_may_be_closed_by_its_own_payload(
    face: Face, open_queue: OpenQueue, clock: ManualClock
) -> None:
    queue = open_queue()
    handles: SimpleQueue[CronHandleFace] = SimpleQueue()
    closed = threading.Event()

    def payload(at: datetime) -> str:
        if at > START + 4 * MINUTE:
            closer = threading.Thread(target=handles.get().close)
            closer.start()
            closed.set()
        return at.isoformat()

    handle = queue.cron.install_periodic_tick("reports", MINUTE, payload)
    handles.put(handle)
    clock.advance(MINUTE)
    assert closed.wait(PATIENCE)
    eventually(lambda: not handle.active)


@pytest.mark.parametrize("face", ["sync"], indirect=True)
def test_one_thread_serves_all_crons_and_ends_with_them(open_queue: OpenQueue) -> None:
    await_the_end_of_other_crons()
    queues = [open_queue(name) for name in ("one", "two", "three")]
    handles = [
        queue.cron.install_periodic_tick(f"reports-{number}", HOUR, number)
        for queue in queues
        for number in range(5)
    ]
    (thread,) = cron_threads()
    for handle in handles[:-1]:
        handle.close()
    assert thread.is_alive()
    handles[-1].close()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    queues[0].cron.install_periodic_tick("again", HOUR, 1)
    (thread,) = cron_threads()
    queues[0].close()
    thread.join(PATIENCE)
    assert not thread.is_alive()


@pytest.mark.parametrize("face", ["async"], indirect=True)
def test_the_asynchronous_crons_need_no_thread(open_queue: OpenQueue, clock: ManualClock) -> None:
    await_the_end_of_other_crons()
    queue = open_queue()
    queue.cron.install_periodic_tick("reports", MINUTE, 1)
    assert cron_threads() == []


@pytest.mark.parametrize("face", ["sync"], indirect=True)
def test_a_payload_may_close_its_own_cron_without_waiting_for_itself(
    queue: QueueFace, clock: ManualClock
) -> None:
    await_the_end_of_other_crons()
    handles: list[CronHandleFace] = []

    def payload(at: datetime) -> str:
        for handle in handles:
            handle.close()
        return at.isoformat()

    handles.append(queue.cron.install_periodic_tick("reports", MINUTE, payload))
    (thread,) = cron_threads()
    clock.advance(MINUTE)
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert not handles[0].active


def test_one_task_serves_all_crons_of_a_loop_and_ends_with_them(
    store_url: str, clock: ManualClock
) -> None:
    async def scenario() -> None:
        async with asyncio.timeout(PATIENCE), AsyncQueue.open(store_url, "orders") as queue:
            handles = [
                await queue.cron.install_periodic_tick(f"reports-{number}", HOUR, number)
                for number in range(5)
            ]
            (task,) = cron_tasks()
            for handle in handles:
                assert not task.done()
                async with handle:
                    assert handle.active
            await task
            await queue.cron.install_periodic_tick("again", HOUR, 1)
            (task,) = cron_tasks()
            await queue.close()
            await task

    asyncio.run(scenario())


def test_crons_left_open_end_with_their_loop(store_url: str, clock: ManualClock) -> None:
    async def scenario() -> AsyncQueue[int]:
        queue = await AsyncQueue.open(store_url, "orders", clock=clock)
        await queue.cron.install_periodic_tick("reports", MINUTE, 1)
        await queue.close()
        return queue

    for _ in range(3):
        assert asyncio.run(scenario()).name == "orders"
    clock.advance(HOUR)


def test_a_clock_that_is_never_moved_keeps_nobody_from_closing(open_queue: OpenQueue) -> None:
    for _ in range(20):
        with open_queue() as queue:
            queue.cron.install_periodic_tick("reports", 1000 * DAY, 1)
            queue.cron.install(TWO, "others", 1000 * DAY, lambda _: [])


def cron_tasks() -> list["asyncio.Task[Any]"]:
    return [task for task in asyncio.all_tasks() if task.get_name() == "duequeue-cron"]


def await_the_end_of_other_crons() -> None:
    for thread in cron_threads():
        thread.join(PATIENCE)


def cron_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "duequeue-cron"]


def test_far_periods_do_not_overflow_a_wait(queue: QueueFace) -> None:
    handle = queue.cron.install(ONE, "reports", timedelta(days=300_000), lambda _: [])
    assert Every(timedelta(days=300_000)).describe() == "every 300000 days"
    assert handle.active
