"""Clocks: the machine's own, and one that tests move."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from duequeue import ManualClock, SystemClock

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_the_system_clock_is_aware_and_goes_on() -> None:
    before = datetime.now(UTC)
    now = SystemClock().now()
    assert before <= now <= datetime.now(UTC)
    assert now.utcoffset() == timedelta(0)


def test_a_manual_clock_stands_still_until_it_is_moved() -> None:
    clock = ManualClock(START)
    assert clock.now() == clock.now() == START
    clock.advance(timedelta(hours=1))
    assert clock.now() == START + timedelta(hours=1)
    clock.advance(-timedelta(hours=2))
    assert clock.now() == START - timedelta(hours=1)
    clock.set(START)
    assert clock.now() == START


def test_a_manual_clock_speaks_utc() -> None:
    there = timezone(timedelta(hours=5, minutes=30))
    clock = ManualClock(START.astimezone(there))
    assert clock.now().tzinfo is UTC
    clock.set((START + timedelta(days=1)).astimezone(there))
    assert (clock.now(), clock.now().tzinfo) == (START + timedelta(days=1), UTC)


def test_naive_instants_are_refused() -> None:
    naive = START.replace(tzinfo=None)
    with pytest.raises(ValueError, match="start must be timezone-aware"):
        ManualClock(naive)
    clock = ManualClock(START)
    with pytest.raises(ValueError, match="to must be timezone-aware"):
        clock.set(naive)
    assert clock.now() == START


def test_listeners_hear_of_every_move_until_they_leave() -> None:
    clock = ManualClock(START)
    heard: list[datetime] = []
    leave = clock.subscribe(lambda: heard.append(clock.now()))
    clock.advance(timedelta(seconds=1))
    clock.set(START)
    leave()
    clock.advance(timedelta(seconds=1))
    assert heard == [START + timedelta(seconds=1), START]


def test_one_listener_may_subscribe_twice_and_leave_once() -> None:
    clock = ManualClock(START)
    heard: list[int] = []

    def listen() -> None:
        heard.append(len(heard))

    leave, _ = clock.subscribe(listen), clock.subscribe(listen)
    leave()
    clock.advance(timedelta(seconds=1))
    assert heard == [0]
