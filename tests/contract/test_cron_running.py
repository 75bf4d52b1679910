"""Crons at work: refreshed in the background, replaced by newer ones, closed, and in trouble."""

import asyncio
import logging
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime, timedelta
from functools import partial
from queue import SimpleQueue
from typing import Any, cast

import psycopg
import pytest

from duequeue import (
    AsyncQueue,
    CronMessage,
    Daily,
    Every,
    ManualClock,
    Misfire,
    QueueClosed,
    SystemClock,
)
from tests.contract.cron_phrases import (
    ONE,
    TWO,
    after,
    assert_holds,
    eventually,
    first_after,
    keys,
    messages,
    periodic_keys,
    run_everything_due,
)
from tests.contract.phrases import DAY, HOUR, MINUTE, PATIENCE, SECOND, snapshot
from tests.fixtures.faces import CronHandleFace, Face, QueueFace
from tests.fixtures.stores import START, OpenQueue


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[], list[str]]]:
    """What the crons have logged so far."""
    with caplog.at_level(logging.INFO, "duequeue.cron"):
        yield lambda: [record.getMessage() for record in caplog.records]


def test_ticks_are_there_when_install_returns(queue: QueueFace) -> None:
    queue.cron.install(ONE, "reports", HOUR, lambda now: [CronMessage("a", now + MINUTE)])
    assert_holds(queue, keys(after(1)))


def test_ticks_are_refreshed_in_the_background(queue: QueueFace, clock: ManualClock) -> None:
    queue.cron.install_periodic_tick("reports", MINUTE, "hello")
    for minute in range(1, 6):
        clock.advance(MINUTE)
        key = periodic_keys(minute + 4)[0]
        eventually(partial(queue.contains, key))


def test_a_waiting_poll_hears_of_new_ticks(open_queue: OpenQueue, clock: ManualClock) -> None:
    producer, consumer = open_queue(), open_queue(poll_interval=400 * DAY)
    # Made up for, in case the background is slower than this test.
    producer.cron.install_periodic_tick("reports", MINUTE, "hello", misfire=Misfire.fire_all(9))
    for minute in range(1, 10):
        clock.advance(MINUTE)
        delivery = consumer.poll()
        assert delivery is not None
        assert delivery.key == periodic_keys(minute)[0]
        assert delivery.ack()


def test_two_nodes_with_one_configuration_make_one_tick(
    open_queue: OpenQueue, clock: ManualClock
) -> None:
    first, second = open_queue(), open_queue()
    handles = [
        node.cron.install_periodic_tick("reports", MINUTE, "hello") for node in (first, second)
    ]
    ran = []
    for _ in range(10):
        clock.advance(MINUTE)
        for handle in handles:
            handle.refresh()
        ran += run_everything_due(first) + run_everything_due(second)
    assert ran == periodic_keys(*range(1, 11))
    assert all(handle.active for handle in handles)


def test_the_newer_installation_wins_and_the_older_one_stops(
    open_queue: OpenQueue, clock: ManualClock, log: Callable[[], list[str]]
) -> None:
    old, new = open_queue(), open_queue()
    older = old.cron.install_periodic_tick("reports", MINUTE, "old")
    newer = new.cron.install_periodic_tick("reports", 2 * MINUTE, "new")
    (status,) = new.cron.list()
    new_keys = keys(after(2, 4, 6, 8), status.config_hash)
    assert_holds(new, new_keys)
    clock.advance(MINUTE)
    older.refresh()
    newer.refresh()
    assert (older.active, newer.active) == (False, True)
    assert_holds(new, new_keys)
    (line,) = log()
    assert "'reports'" in line
    assert "another configuration was installed later" in line
    older.refresh()
    assert len(log()) == 1


def test_the_older_one_stops_in_the_background(open_queue: OpenQueue, clock: ManualClock) -> None:
    old, new = open_queue(), open_queue()
    older = old.cron.install_periodic_tick("reports", MINUTE, "old")
    newer = new.cron.install_periodic_tick("reports", 2 * MINUTE, "new")
    clock.advance(MINUTE)
    eventually(lambda: not older.active)
    assert newer.active


def test_a_rollback_is_a_newer_installation_too(open_queue: OpenQueue) -> None:
    nodes = [open_queue() for _ in range(3)]
    handles = [
        node.cron.install_periodic_tick("reports", period, "hello")
        for node, period in zip(nodes, (MINUTE, 2 * MINUTE, MINUTE), strict=True)
    ]
    for handle in handles:
        handle.refresh()
    assert [handle.active for handle in handles] == [True, False, True]
    assert_holds(nodes[0], periodic_keys(1, 2, 3, 4))
    assert nodes[0].cron.list()[0].generation == 3


def test_an_uninstalled_cron_stops(
    open_queue: OpenQueue, clock: ManualClock, log: Callable[[], list[str]]
) -> None:
    node, other = open_queue(), open_queue()
    handle = node.cron.install_periodic_tick("reports", MINUTE, "hello")
    (status,) = other.cron.list()
    assert other.cron.uninstall_tick(status.config_hash, "reports") == 4
    clock.advance(MINUTE)
    eventually(lambda: not handle.active)
    assert_holds(node, [])
    assert "uninstalled" in log()[0]


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


def test_a_payload_that_cannot_be_made_is_tried_again(
    queue: QueueFace, clock: ManualClock, log: Callable[[], list[str]]
) -> None:
    broken = {START + 2 * MINUTE}

    def payload(at: datetime) -> str:
        if at in broken:
            raise LookupError("no figures yet")
        return at.isoformat()

    handle = queue.cron.install_periodic_tick("reports", MINUTE, payload)
    other = queue.cron.install_periodic_tick("others", MINUTE, "hello")
    assert_holds(queue, periodic_keys(1, 3, 4) + periodic_keys(1, 2, 3, 4, prefix="others"))
    (line,) = log()
    assert "'reports'" in line
    assert "2026-03-01T12:02:00+00:00" in line
    handle.refresh()
    assert not queue.contains(periodic_keys(2)[0])
    broken.clear()
    clock.advance(10 * SECOND)
    eventually(lambda: queue.contains(periodic_keys(2)[0]))
    assert handle.active
    assert other.active


def test_a_payload_that_cannot_be_encoded_is_like_one_that_cannot_be_made(
    queue: QueueFace, log: Callable[[], list[str]]
) -> None:
    queue.cron.install_periodic_tick(
        "reports", MINUTE, lambda at: object() if at == START + MINUTE else "fine"
    )
    assert_holds(queue, periodic_keys(2, 3, 4))
    assert len(log()) == 1


def test_a_failed_run_is_logged_and_repeated(
    queue: QueueFace, clock: ManualClock, log: Callable[[], list[str]]
) -> None:
    failures = [ValueError("not now"), ValueError("not now either")]

    def generate(now: datetime) -> list[CronMessage[str]]:
        if failures:
            raise failures.pop()
        return [CronMessage("new", START + HOUR)]

    queue.cron.install_tick(ONE, "reports", [CronMessage("old", START + HOUR)])
    handle = queue.cron.install(ONE, "reports", 5 * SECOND, generate)
    assert "'reports'" in log()[0]
    handle.refresh()
    assert len(log()) == 2
    assert snapshot(queue, keys([START + HOUR])[0]).payload == "old"
    clock.advance(5 * SECOND)
    # The first run that succeeds replaces, whichever it is.
    eventually(lambda: snapshot(queue, keys([START + HOUR])[0]).payload == "new")
    assert handle.active


def test_what_generate_returns_is_checked(queue: QueueFace, log: Callable[[], list[str]]) -> None:
    nonsense = cast("list[CronMessage[str]]", [("a", START)])
    handle = queue.cron.install(ONE, "reports", HOUR, lambda _: nonsense)
    assert len(log()) == 1
    assert handle.active
    assert queue.cron.list() == []


@pytest.mark.parametrize("face", ["sync"], indirect=True)
def test_one_thread_serves_all_crons_and_ends_with_them(open_queue: OpenQueue) -> None:
    assert cron_threads() == []
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
    queue = open_queue()
    queue.cron.install_periodic_tick("reports", MINUTE, 1)
    assert cron_threads() == []


@pytest.mark.parametrize("face", ["sync"], indirect=True)
def test_a_payload_may_close_its_own_cron_without_waiting_for_itself(
    queue: QueueFace, clock: ManualClock
) -> None:
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


def test_on_a_real_clock_every_tick_comes_in_time_and_in_order(open_queue: OpenQueue) -> None:
    queue = open_queue(clock=SystemClock())
    period = timedelta(milliseconds=50)
    queue.cron.install_periodic_tick(
        "reports", period, lambda at: at.isoformat(), misfire=Misfire.fire_all(1000)
    )
    ticks = []
    for _ in range(8):
        delivery = queue.poll(timedelta(seconds=PATIENCE))
        assert delivery is not None
        assert delivery.delivered_at >= delivery.due_at
        assert delivery.payload == delivery.due_at.isoformat()
        assert delivery.ack()
        ticks.append(delivery.due_at)
    assert ticks == first_after(Every(period), ticks[0] - period, 8)


def test_a_clock_that_is_never_moved_keeps_nobody_from_closing(open_queue: OpenQueue) -> None:
    for _ in range(20):
        with open_queue() as queue:
            queue.cron.install_periodic_tick("reports", 1000 * DAY, 1)
            queue.cron.install(TWO, "others", 1000 * DAY, lambda _: [])


def test_a_lost_connection_is_not_the_end(
    face: Face, clock: ManualClock, postgres_url: str
) -> None:
    end_the_others = """
        SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()
    """
    with face.open(postgres_url, "orders", clock=clock) as queue:
        handle = queue.cron.install_periodic_tick("reports", MINUTE, 1)
        for minute in range(5, 8):
            with psycopg.connect(postgres_url, autocommit=True) as connection:
                connection.execute(end_the_others)
            clock.advance(MINUTE)
            handle.refresh()
            handle.refresh()
            assert queue.contains(periodic_keys(minute)[0])


@pytest.mark.parametrize("face", ["sync"], indirect=True)
@pytest.mark.parametrize("store", ["sqlite", "postgres"], indirect=True)
def test_ticks_in_the_callers_own_transaction(
    store: str, store_url: str, open_queue: OpenQueue
) -> None:
    queue = open_queue()
    with closing(connected(store, store_url)) as connection:
        within = queue.within(connection)
        within.cron.install_tick(ONE, "reports", messages(1))
        with pytest.raises(ValueError, match="transaction"):
            within.cron.install_periodic_tick("reports", MINUTE, 1)
        connection.rollback()
        assert queue.cron.list() == []
        within.cron.install_tick(ONE, "reports", messages(1))
        connection.commit()
    assert_holds(queue, keys(after(1)))


def connected(store: str, url: str) -> sqlite3.Connection | psycopg.Connection:
    if store == "postgres":
        return psycopg.connect(url)
    return sqlite3.connect(url.removeprefix("sqlite:///"))


def cron_tasks() -> list["asyncio.Task[Any]"]:
    return [task for task in asyncio.all_tasks() if task.get_name() == "duequeue-cron"]


def cron_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "duequeue-cron"]


def test_far_periods_do_not_overflow_a_wait(queue: QueueFace) -> None:
    handle = queue.cron.install(ONE, "reports", timedelta(days=300_000), lambda _: [])
    assert Every(timedelta(days=300_000)).describe() == "every 300000 days"
    assert handle.active
