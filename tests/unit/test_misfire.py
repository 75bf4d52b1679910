"""Which missed ticks are made up for."""

from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duequeue import Crontab, Daily, Every, Misfire, Schedule
from duequeue.instants import to_millis
from duequeue.schedules.schedule import ticks

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)


def minutes(*numbers: int) -> list[datetime]:
    return [START + number * MINUTE for number in numbers]


def test_the_latest_ones_are_chosen() -> None:
    end = START + 10 * MINUTE
    every_minute = Every(MINUTE)
    assert Misfire.skip().chosen(every_minute, START, end) == []
    assert Misfire.fire_once().chosen(every_minute, START, end) == minutes(10)
    assert Misfire.fire_all(3).chosen(every_minute, START, end) == minutes(8, 9, 10)
    assert Misfire.fire_all(99).chosen(every_minute, START, end) == minutes(*range(1, 11))


def test_the_bounds_are_those_of_time_passed() -> None:
    every_minute = Every(MINUTE)
    assert Misfire.fire_all(9).chosen(every_minute, START, START) == []
    assert Misfire.fire_all(9).chosen(every_minute, START + MINUTE, START) == []
    assert Misfire.fire_all(9).chosen(every_minute, START, START + MINUTE) == minutes(1)


def test_what_is_known_is_not_missed() -> None:
    known = {to_millis(at) for at in minutes(9, 10)}
    end = START + 10 * MINUTE
    assert Misfire.fire_all(2).chosen(Every(MINUTE), START, end, known) == minutes(7, 8)


def test_a_rare_tick_in_a_long_time_is_found() -> None:
    leap_day = Crontab("0 0 29 2 *")
    found = Misfire.fire_once().chosen(leap_day, START, START + 1500 * DAY)
    assert found == [datetime(2028, 2, 29, tzinfo=UTC)]


def test_a_busy_schedule_is_not_walked_from_the_beginning() -> None:
    asked = 0

    class Counted:
        text = "every millisecond"

        def describe(self) -> str:
            return self.text

        def next_after(self, instant: datetime) -> datetime:
            nonlocal asked
            asked += 1
            return Every(timedelta(milliseconds=1)).next_after(instant)

    found = Misfire.fire_all(7).chosen(Counted(), START, START + 3650 * DAY)
    assert len(found) == 7
    assert found[-1] == START + 3650 * DAY
    assert asked < 5000


@settings(deadline=None)
@given(
    schedule=st.one_of(
        st.integers(2000, 500_000).map(lambda millis: Every(timedelta(milliseconds=millis))),
        st.sampled_from(
            [
                Daily(["02:30", "03:15", "23:59"], "Europe/Berlin"),
                Crontab("*/7 1-4 * * *", "Australia/Lord_Howe"),
                Crontab("0 0 L * *"),
            ]
        ),
    ),
    length=st.timedeltas(timedelta(0), timedelta(minutes=300)),
    limit=st.integers(0, 20),
)
def test_the_short_way_finds_what_the_long_way_finds(
    schedule: Schedule, length: timedelta, limit: int
) -> None:
    every = list(ticks(schedule, START, START + length))
    expected = every[-limit:] if limit else []
    assert Misfire(limit).chosen(schedule, START, START + length) == expected


@pytest.mark.parametrize("limit", [0, -1])
def test_fire_all_needs_a_bound(limit: int) -> None:
    with pytest.raises(ValueError, match="limit"):
        Misfire.fire_all(limit)


@pytest.mark.parametrize("limit", [1.5, "3", None, True])
def test_the_bound_is_a_whole_number(limit: object) -> None:
    with pytest.raises(TypeError, match="limit"):
        Misfire.fire_all(cast("Any", limit))


def test_policies_are_values() -> None:
    assert Misfire.fire_all(1) == Misfire.fire_once()
    assert Misfire() == Misfire.skip()
    assert len({Misfire.skip(), Misfire(0), Misfire.fire_all(2)}) == 2


def test_a_limit_is_a_number_one_can_count_to() -> None:
    for limit in (-1, 2**31):
        with pytest.raises(ValueError, match="limit must be a number from 0 to 2147483647"):
            Misfire.fire_all(limit)
