"""Crons at work: refreshed in the background, on many nodes, and replaced by newer ones."""

from datetime import timedelta
from functools import partial

import pytest

from duequeue import (
    CronMessage,
    Every,
    ManualClock,
    Misfire,
    SystemClock,
)
from duequeue.contract.cron_phrases import (
    ONE,
    after,
    assert_holds,
    eventually,
    first_after,
    keys,
    logged,
    periodic_keys,
    run_everything_due,
)
from duequeue.contract.faces import QueueFace
from duequeue.contract.fixtures import OpenQueue
from duequeue.contract.phrases import DAY, HOUR, MINUTE, PATIENCE


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
    open_queue: OpenQueue, clock: ManualClock, caplog: pytest.LogCaptureFixture
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
    (line,) = logged(caplog)
    assert "'reports'" in line
    assert "another configuration was installed later" in line
    older.refresh()
    assert len(logged(caplog)) == 1


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
    open_queue: OpenQueue, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    node, other = open_queue(), open_queue()
    handle = node.cron.install_periodic_tick("reports", MINUTE, "hello")
    (status,) = other.cron.list()
    assert other.cron.uninstall_tick(status.config_hash, "reports") == 4
    clock.advance(MINUTE)
    eventually(lambda: not handle.active)
    assert_holds(node, [])
    assert "uninstalled" in logged(caplog)[0]


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
