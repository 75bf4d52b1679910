"""Crons on a clock that a test moves: the next call finds their ticks, without any waiting."""

import threading
from datetime import datetime

import pytest

from duequeue import Crontab, Daily, ManualClock, Misfire
from duequeue.contract.cron_phrases import (
    ONE,
    after,
    assert_holds,
    keys,
    messages,
    periodic_keys,
    run_everything_due,
)
from duequeue.contract.faces import QueueFace
from duequeue.contract.fixtures import START, Consume, OpenQueue
from duequeue.contract.phrases import DAY, HOUR, MINUTE, claim
from duequeue.contract.stage import until_gone


def test_every_tick_is_there_after_a_move(queue: QueueFace, clock: ManualClock) -> None:
    queue.cron.install_periodic_tick("reports", MINUTE, "hello")
    for minute in range(1, 50):
        clock.advance(MINUTE)
        assert run_everything_due(queue) == periodic_keys(minute)


def test_a_daily_schedule_follows_for_weeks(queue: QueueFace, clock: ManualClock) -> None:
    queue.cron.install_daily_schedule("reports", Daily(["07:00"]), lambda at: at.isoformat())
    for day in range(1, 30):
        clock.advance(DAY)
        delivery = claim(queue)
        assert (
            delivery.payload
            == (datetime(2026, 3, 1, 7, tzinfo=START.tzinfo) + day * DAY).isoformat()
        )
        assert delivery.ack()
        assert queue.try_poll() is None


def test_every_kind_of_call_finds_them(queue: QueueFace, clock: ManualClock) -> None:
    queue.cron.install_expression("reports", Crontab("* * * * *"), "hello")
    (first,) = queue.cron.list()
    clock.advance(10 * MINUTE)
    assert queue.stats().future == 4
    clock.advance(10 * MINUTE)
    (status,) = queue.cron.list()
    assert (first.next_tick, status.next_tick) == (after(1)[0], after(1)[0])
    assert queue.contains(keys(after(24), status.config_hash)[0])
    clock.set(START + HOUR)
    assert queue.read(keys(after(61), status.config_hash)[0]) is not None


def test_a_leap_over_many_ticks_is_an_outage(queue: QueueFace, clock: ManualClock) -> None:
    queue.cron.install_periodic_tick("reports", MINUTE, "hello")
    queue.cron.install_periodic_tick("all", MINUTE, "hello", misfire=Misfire.fire_all(100))
    clock.advance(10 * MINUTE)
    ran = run_everything_due(queue)
    assert [key for key in ran if key.startswith("reports/")] == periodic_keys(1, 2, 3, 4)
    assert sorted(key for key in ran if key.startswith("all/")) == periodic_keys(
        *range(1, 11), prefix="all"
    )


def test_another_queue_on_the_same_clock_finds_them_too(
    open_queue: OpenQueue, clock: ManualClock
) -> None:
    node, other = open_queue(), open_queue()
    node.cron.install_periodic_tick("reports", MINUTE, "hello")
    for minute in range(1, 10):
        clock.advance(MINUTE)
        assert run_everything_due(other) == periodic_keys(minute)


def test_a_consumer_is_given_them(queue: QueueFace, clock: ManualClock, consume: Consume) -> None:
    seen: list[str] = []
    arrived = threading.Semaphore(0)

    def handler(delivery: object) -> None:
        seen.append(delivery.key)  # type: ignore[attr-defined]  # either face's delivery
        arrived.release()

    queue.cron.install_periodic_tick("reports", MINUTE, "hello")
    consume(queue, handler)
    for _ in range(10):
        clock.advance(MINUTE)
        assert arrived.acquire(timeout=30)
        until_gone(queue, seen[-1])  # or the clock would overtake its lease
    assert seen == periodic_keys(*range(1, 11))


def test_a_clock_that_is_set_back_makes_no_tick_twice(queue: QueueFace, clock: ManualClock) -> None:
    queue.cron.install_periodic_tick("reports", MINUTE, "hello")
    ran = []
    for move in (MINUTE, MINUTE, -2 * MINUTE, MINUTE, MINUTE, MINUTE):
        clock.advance(move)
        ran += run_everything_due(queue)
    assert ran == periodic_keys(1, 2, 3)


def test_a_closed_cron_follows_no_more(queue: QueueFace, clock: ManualClock) -> None:
    queue.cron.install_periodic_tick("reports", MINUTE, "hello").close()
    clock.advance(HOUR)
    assert run_everything_due(queue) == periodic_keys(1, 2, 3, 4)
    assert_holds(queue, [])


@pytest.mark.parametrize("face", ["sync"], indirect=True)
def test_a_payload_may_use_the_queue_and_move_the_clock(
    queue: QueueFace, clock: ManualClock
) -> None:
    def payload(at: datetime) -> str:
        if at > START + 4 * MINUTE:
            clock.advance(MINUTE)
            queue.offer(f"made for {at.minute}", "extra", DAY)
        return at.isoformat()

    queue.cron.install_periodic_tick("reports", MINUTE, payload)
    clock.advance(MINUTE)
    assert queue.contains("made for 5")
    assert queue.contains(periodic_keys(5)[0])


def test_ticks_put_in_by_hand_are_as_before(queue: QueueFace, clock: ManualClock) -> None:
    queue.cron.install_tick(ONE, "reports", messages(1))
    clock.advance(HOUR)
    assert run_everything_due(queue) == keys(after(1))
    assert queue.try_poll() is None
