"""Every and Daily: which instants tick, through every change of the clock."""

import pickle
import time as stopwatch
from collections.abc import Callable
from datetime import UTC, datetime, time, timedelta, timezone
from importlib.resources import files
from itertools import islice
from typing import Any, cast
from zoneinfo import ZoneInfo

import pytest

from duequeue.schedules.schedule import (
    Daily,
    DescribedSchedule,
    EndOfTime,
    Every,
    Schedule,
    ticks,
)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def next_ticks(schedule: Schedule, after: str, count: int) -> list[str]:
    found = islice(ticks(schedule, at(after)), count)
    return [tick.isoformat(timespec="minutes").removesuffix("+00:00") for tick in found]


class TestEvery:
    @pytest.mark.parametrize(
        ("period", "after", "tick"),
        [
            (timedelta(minutes=15), "2026-11-15T07:00:00", "2026-11-15T07:15:00"),
            (timedelta(minutes=15), "2026-11-15T06:59:59.999999", "2026-11-15T07:00:00"),
            (timedelta(minutes=15), "2026-11-15T07:00:00.000999", "2026-11-15T07:15:00"),
            (timedelta(milliseconds=1), "2026-11-15T07:00:00.000999", "2026-11-15T07:00:00.001"),
            (timedelta(milliseconds=250), "2026-11-15T07:00:00.300", "2026-11-15T07:00:00.500"),
            (timedelta(days=1), "2026-11-15T07:00:00", "2026-11-16T00:00:00"),
            (timedelta(days=7), "1970-01-01T00:00:00", "1970-01-08T00:00:00"),
            (timedelta(days=7), "1969-12-31T23:59:59", "1970-01-01T00:00:00"),
            (timedelta(hours=5), "1969-12-31T00:00:00", "1969-12-31T04:00:00"),
            (timedelta(days=36525), "2026-11-15T07:00:00", "2070-01-01T00:00:00"),
            (timedelta(seconds=7), "0001-01-01T00:00:00", "0001-01-01T00:00:04"),
        ],
    )
    def test_ticks_at_multiples_since_the_epoch(
        self, period: timedelta, after: str, tick: str
    ) -> None:
        assert Every(period).next_after(at(after)) == at(tick)

    def test_the_zone_of_the_instant_does_not_matter(self) -> None:
        instant = datetime(2026, 11, 15, 9, 1, tzinfo=timezone(timedelta(hours=2)))
        tick = Every(timedelta(hours=1)).next_after(instant)
        assert tick == at("2026-11-15T08:00")
        assert tick.tzinfo is UTC

    @pytest.mark.parametrize("period", [timedelta(0), timedelta(seconds=-1)])
    def test_a_period_is_positive(self, period: timedelta) -> None:
        with pytest.raises(ValueError, match="period must be at least one millisecond"):
            Every(period)

    @pytest.mark.parametrize("microseconds", [1, 999])
    def test_a_period_is_not_below_a_millisecond(self, microseconds: int) -> None:
        with pytest.raises(ValueError, match="period must be at least one millisecond"):
            Every(timedelta(microseconds=microseconds))

    def test_a_period_is_whole_milliseconds(self) -> None:
        with pytest.raises(ValueError, match="period must be a whole number of milliseconds"):
            Every(timedelta(microseconds=1500))

    def test_a_period_is_not_beyond_a_thousand_years(self) -> None:
        with pytest.raises(ValueError, match="period must be at most 365000 days"):
            Every(timedelta(days=999_999_999))

    def test_a_period_is_a_timedelta(self) -> None:
        with pytest.raises(TypeError, match="period must be a timedelta, not int"):
            Every(60)  # type: ignore[arg-type]  # what the test is about

    @pytest.mark.parametrize(
        ("period", "text"),
        [
            (timedelta(minutes=15), "every 15 minutes"),
            (timedelta(seconds=90), "every 90 seconds"),
            (timedelta(hours=24), "every day"),
            (timedelta(milliseconds=1500), "every 1500 milliseconds"),
        ],
    )
    def test_says_what_it_does(self, period: timedelta, text: str) -> None:
        assert Every(period).describe() == Every(period).text == text


class TestDaily:
    def test_the_next_of_several_times(self) -> None:
        schedule = Daily(["19:30", time(7)], "Europe/Berlin")
        assert next_ticks(schedule, "2026-01-15T06:00", 3) == [
            "2026-01-15T18:30",
            "2026-01-16T06:00",
            "2026-01-16T18:30",
        ]

    @pytest.mark.parametrize(
        ("after", "tick"),
        [
            ("2026-01-15T06:59:59.999999", "2026-01-15T07:00"),
            ("2026-01-15T07:00:00.000000", "2026-01-16T07:00"),
            ("2026-01-15T07:00:00.000999", "2026-01-16T07:00"),
        ],
    )
    def test_strictly_later_at_the_millisecond(self, after: str, tick: str) -> None:
        assert Daily(["07:00"]).next_after(at(after)) == at(tick)

    def test_answers_in_utc(self) -> None:
        assert Daily(["07:00"], "Asia/Tokyo").next_after(at("2026-01-15")).tzinfo is UTC

    @pytest.mark.parametrize(
        "same",
        [
            Daily([time(19), time(7)], "America/New_York"),
            Daily(["07:00", "19:00", "07:00:00"], "America/New_York"),
            Daily({time(7, fold=1), time(19)}, "America/New_York"),
            Daily(iter(["07:00", "19:00"]), "US/Eastern"),
            Daily([time(7, microsecond=999), time(19)], "US/Eastern"),
        ],
    )
    def test_one_schedule_however_it_is_written(self, same: Daily) -> None:
        schedule = Daily(["07:00", "19:00"], "America/New_York")
        assert same == schedule
        assert hash(same) == hash(schedule)
        assert same.text == schedule.text == "daily at 07:00, 19:00 in America/New_York"

    def test_describes_the_zone_as_given(self) -> None:
        schedule = Daily([time(7, 0, 30), time(7, 0, 0, 5000)], "US/Eastern")
        assert schedule.describe() == "daily at 07:00:00.005, 07:00:30 in US/Eastern"

    def test_how_far_ahead_does_not_change_the_text(self) -> None:
        far = Daily(["07:00"], horizon=timedelta(days=9), interval=timedelta(minutes=1))
        assert far.text == Daily(["07:00"]).text
        assert far != Daily(["07:00"])

    def test_survives_pickling(self) -> None:
        schedule = Daily(["07:00"], "US/Eastern")
        assert pickle.loads(pickle.dumps(schedule)) == schedule  # noqa: S301 - our own bytes

    @pytest.mark.parametrize("times", [[], (), iter(())])
    def test_at_least_one_time(self, times: list[time]) -> None:
        with pytest.raises(ValueError, match="at least one time"):
            Daily(times)

    @pytest.mark.parametrize(
        "text",
        ["", "7:00", "24:00", "07:60", "07:00:60", "0700", "07:00Z", "noon", "\u0660\u0667:00"],
    )
    def test_a_time_that_is_none(self, text: str) -> None:
        with pytest.raises(ValueError, match=f"times must be 'HH:MM' .*, not '{text}'"):
            Daily(["06:00", text])

    @pytest.mark.parametrize(
        "given", [7, None, timedelta(hours=7), datetime(2026, 1, 1, tzinfo=UTC)]
    )
    def test_something_else_than_a_time(self, given: object) -> None:
        with pytest.raises(TypeError, match="times must hold"):
            Daily([given])  # type: ignore[list-item]  # what the test is about

    @pytest.mark.parametrize("times", ["07:00", time(7), None])
    def test_a_lone_time_is_no_list(self, times: str) -> None:
        with pytest.raises(TypeError, match="times must be a list of times"):
            Daily(times)

    @pytest.mark.parametrize(
        "weekdays", [["mon", "fri"], ["Friday", "MONDAY", "mon"], [4, 0], {0, "fri"}], ids=repr
    )
    def test_some_days_of_the_week(self, weekdays: list[str | int]) -> None:
        schedule = Daily(["07:00", "19:00"], weekdays=weekdays)
        assert schedule.weekdays == ("mon", "fri")
        # This is a Friday.
        assert next_ticks(schedule, "2026-03-06T08:00", 4) == [
            "2026-03-06T19:00",
            "2026-03-09T07:00",
            "2026-03-09T19:00",
            "2026-03-13T07:00",
        ]

    def test_the_day_of_the_week_is_the_local_one(self) -> None:
        auckland = Daily(["07:00"], "Pacific/Auckland", weekdays=["mon"])
        assert next_ticks(auckland, "2026-03-01T00:00", 2) == [
            "2026-03-01T18:00",
            "2026-03-08T18:00",
        ]

    def test_a_skipped_time_on_a_day_of_the_week(self) -> None:
        sundays = Daily(["02:30"], "Europe/Berlin", weekdays=["sun"])
        assert next_ticks(sundays, "2026-03-23T00:00", 2) == [
            "2026-03-29T01:00",
            "2026-04-05T00:30",
        ]

    @pytest.mark.parametrize(
        ("weekdays", "error", "words"),
        [
            ([], ValueError, "at least one day"),
            (["funday"], ValueError, "'mon' to 'sun', or 0 to 6 .* not 'funday'"),
            ([7], ValueError, "not 7"),
            ([-1], ValueError, "not -1"),
            ("mon", TypeError, "list of days such as"),
            (1, TypeError, "list of days such as"),
            ([True], TypeError, "names or numbers of days, not True"),
            ([1.0], TypeError, "names or numbers of days"),
        ],
    )
    def test_days_that_do_not_exist(
        self, weekdays: Any, error: type[Exception], words: str
    ) -> None:
        with pytest.raises(error, match=f"^weekdays must .*{words}"):
            Daily(["07:00"], weekdays=weekdays)

    def test_a_zone_may_be_an_object(self) -> None:
        berlin = Daily(["07:00"], ZoneInfo("Europe/Berlin"))
        assert berlin == Daily(["07:00"], "Europe/Berlin")
        assert berlin.zone == "Europe/Berlin"

    def test_a_zone_without_a_name(self) -> None:
        with files("tzdata").joinpath("zoneinfo", "Asia", "Tokyo").open("rb") as rules:
            nameless = ZoneInfo.from_file(rules)
        with pytest.raises(ValueError, match="has no name"):
            Daily(["07:00"], nameless)

    def test_a_time_has_no_zone_of_its_own(self) -> None:
        with pytest.raises(ValueError, match="pass zone instead"):
            Daily([time(7, tzinfo=UTC)])

    @pytest.mark.parametrize("argument", ["horizon", "interval"])
    def test_durations_are_positive(self, argument: str) -> None:
        with pytest.raises(ValueError, match=f"{argument} must be at least one millisecond"):
            Daily(["07:00"], "UTC", **{argument: cast("Any", timedelta(0))})

    def test_an_unknown_zone(self) -> None:
        with pytest.raises(ValueError, match="did you mean 'Europe/Berlin'"):
            Daily(["07:00"], "Europe/Berln")


# Zone, local times, an instant before the change, and the ticks that follow in UTC.
GAPS = {
    "a skipped time comes when the gap ends": (
        ("Europe/Berlin", ["02:30"], "2026-03-28T12:00"),
        ["2026-03-29T01:00", "2026-03-30T00:30"],
    ),
    "it swallows no other time of that day": (
        ("Europe/Berlin", ["02:30", "03:15", "03:30"], "2026-03-28T12:00"),
        ["2026-03-29T01:00", "2026-03-29T01:15", "2026-03-29T01:30", "2026-03-30T00:30"],
    ),
    "times that meet at one instant are one tick": (
        ("Europe/Berlin", ["02:00", "02:30", "03:00"], "2026-03-28T12:00"),
        ["2026-03-29T01:00", "2026-03-30T00:00", "2026-03-30T00:30", "2026-03-30T01:00"],
    ),
    "the last instant before a gap is not in it": (
        ("Europe/Berlin", ["01:59", "03:00"], "2026-03-28T12:00"),
        ["2026-03-29T00:59", "2026-03-29T01:00", "2026-03-29T23:59"],
    ),
    "asked at the end of the gap, it is over": (
        ("Europe/Berlin", ["02:30"], "2026-03-29T01:00"),
        ["2026-03-30T00:30"],
    ),
    "half an hour, in Lord Howe": (
        ("Australia/Lord_Howe", ["02:00", "02:15", "02:45"], "2026-10-03T12:00"),
        ["2026-10-03T15:30", "2026-10-03T15:45", "2026-10-04T15:00"],
    ),
    "midnight, in São Paulo": (
        ("America/Sao_Paulo", ["00:00", "00:30", "01:30"], "2018-11-03T12:00"),
        ["2018-11-04T03:00", "2018-11-04T03:30", "2018-11-05T02:00"],
    ),
    "midnight, in Cairo": (
        ("Africa/Cairo", ["00:00", "00:30"], "2026-04-23T12:00"),
        ["2026-04-23T22:00", "2026-04-24T21:00", "2026-04-24T21:30"],
    ),
    "a whole day, in Apia": (
        ("Pacific/Apia", ["06:00", "18:00"], "2011-12-29T20:00"),
        ["2011-12-30T04:00", "2011-12-30T10:00", "2011-12-30T16:00", "2011-12-31T04:00"],
    ),
}

OVERLAPS = {
    "a repeated time comes the first time": (
        ("Europe/Berlin", ["02:30"], "2026-10-24T12:00"),
        ["2026-10-25T00:30", "2026-10-26T01:30"],
    ),
    "asked between the two, it has been": (
        ("Europe/Berlin", ["02:30"], "2026-10-25T01:00"),
        ["2026-10-26T01:30"],
    ),
    "asked the second time, it has been": (
        ("Europe/Berlin", ["02:10", "02:50"], "2026-10-25T01:30"),
        ["2026-10-26T01:10"],
    ),
    "asked after the first of two": (
        ("Europe/Berlin", ["02:10", "02:50"], "2026-10-25T00:10"),
        ["2026-10-25T00:50", "2026-10-26T01:10"],
    ),
    "the end of the repeated hour is not repeated": (
        ("Europe/Berlin", ["02:00", "03:00"], "2026-10-24T12:00"),
        ["2026-10-25T00:00", "2026-10-25T02:00", "2026-10-26T01:00"],
    ),
    "half an hour, in Lord Howe": (
        ("Australia/Lord_Howe", ["01:30", "01:45", "02:00"], "2026-04-04T12:00"),
        ["2026-04-04T14:30", "2026-04-04T14:45", "2026-04-04T15:30", "2026-04-05T15:00"],
    ),
    "midnight, in São Paulo: the evening comes twice": (
        ("America/Sao_Paulo", ["00:00", "23:30"], "2018-02-17T12:00"),
        ["2018-02-18T01:30", "2018-02-18T03:00", "2018-02-19T02:30"],
    ),
    "midnight, in Cairo: the evening comes twice": (
        ("Africa/Cairo", ["00:00", "23:30"], "2026-10-29T12:00"),
        ["2026-10-29T20:30", "2026-10-29T22:00", "2026-10-30T21:30"],
    ),
}


@pytest.mark.parametrize(("case", "expected"), GAPS.values(), ids=GAPS)
def test_a_local_time_that_does_not_exist(
    case: tuple[str, list[str], str], expected: list[str]
) -> None:
    zone, times, after = case
    assert next_ticks(Daily(times, zone), after, len(expected)) == expected


@pytest.mark.parametrize(("case", "expected"), OVERLAPS.values(), ids=OVERLAPS)
def test_a_local_time_that_happens_twice(
    case: tuple[str, list[str], str], expected: list[str]
) -> None:
    zone, times, after = case
    assert next_ticks(Daily(times, zone), after, len(expected)) == expected


class TestTicks:
    def test_after_is_left_out_and_until_is_in(self) -> None:
        found = ticks(Every(timedelta(hours=1)), at("2026-01-15T07:00"), at("2026-01-15T09:00"))
        assert list(found) == [at("2026-01-15T08:00"), at("2026-01-15T09:00")]

    def test_none_between(self) -> None:
        assert list(ticks(Daily(["07:00"]), at("2026-01-15T08:00"), at("2026-01-15T09:00"))) == []

    def test_nothing_is_computed_before_it_is_asked_for(self) -> None:
        everlasting = ticks(Every(timedelta(milliseconds=1)), at("2026-01-15"), at("9999-01-01"))
        assert next(everlasting) == at("2026-01-15T00:00:00.001")

    def test_they_end_where_datetimes_end(self) -> None:
        found = ticks(Every(timedelta(days=365_000)), at("8000-01-01"))
        assert [tick.year for tick in found] == [8965, 9964]

    @pytest.mark.parametrize("naive", ["after", "until"])
    def test_instants_are_aware_and_checked_at_once(self, naive: str) -> None:
        given = {"after": at("2026-01-15"), "until": at("2026-01-16")}
        given[naive] = given[naive].replace(tzinfo=None)
        with pytest.raises(ValueError, match=f"{naive} must be timezone-aware"):
            ticks(Daily(["07:00"]), **given)


ALL = [Every(timedelta(hours=1)), Daily(["07:00"]), Daily(["07:00"], "America/New_York")]
LAST = datetime.max.replace(tzinfo=UTC)


@pytest.mark.parametrize("schedule", ALL, ids=str)
class TestEdges:
    def test_a_naive_instant(self, schedule: Schedule) -> None:
        with pytest.raises(ValueError, match="instant must be timezone-aware"):
            schedule.next_after(datetime(2026, 1, 1))  # noqa: DTZ001 - what the test is about

    def test_the_end_of_time(self, schedule: DescribedSchedule) -> None:
        with pytest.raises(
            EndOfTime, match=f"{schedule.describe()}: .* outside the years 1 to 9999"
        ):
            schedule.next_after(LAST)

    def test_shortly_before_the_end_of_time(self, schedule: Schedule) -> None:
        after = LAST - timedelta(days=3)
        assert after < schedule.next_after(after) <= after + timedelta(days=1)

    @pytest.mark.parametrize("hours", [-14, 0, 14])
    def test_the_beginning_of_time(self, schedule: Schedule, hours: int) -> None:
        first = datetime.min.replace(tzinfo=timezone(timedelta(hours=hours)))
        try:
            assert schedule.next_after(first) > first
        except EndOfTime as error:
            assert "outside the years 1 to 9999" in str(error)  # noqa: PT017 - either is right


MANY = Daily([time(n // 60, n % 60) for n in range(1440)], "Europe/Berlin")
FAST: dict[str, Callable[[], datetime]] = {
    "in an ordinary hour": lambda: Daily(["07:00"], "Europe/Berlin").next_after(at("2026-07-01")),
    "a thousand times": lambda: MANY.next_after(at("2026-07-01T12:34")),
    "in a skipped day": lambda: Daily(["06:00"], "Pacific/Apia").next_after(at("2011-12-30T05:00")),
    "in a repeated hour": lambda: MANY.next_after(at("2026-10-25T01:00")),
    "every millisecond": lambda: Every(timedelta(milliseconds=1)).next_after(at("2026-07-01")),
}


@pytest.mark.parametrize("ask", FAST.values(), ids=FAST)
def test_no_search_through_the_minutes(ask: Callable[[], datetime]) -> None:
    """Tens of microseconds each; the bound is far above that, and far below any scan."""
    ask()
    start = stopwatch.process_time()
    for _ in range(200):
        ask()
    assert (stopwatch.process_time() - start) / 200 < 0.002
