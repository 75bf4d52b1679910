"""Crontab: what expressions mean, what is wrong with them, and what clock changes do to them."""

import pickle
import time as stopwatch
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise

import pytest

from duequeue.schedules.crontab import Crontab
from duequeue.schedules.schedule import EndOfTime, ticks


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def next_ticks(schedule: Crontab, after: str, count: int) -> list[str]:
    found = islice(ticks(schedule, at(after)), count)
    return [tick.isoformat(timespec="minutes").removesuffix("+00:00") for tick in found]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("*/5 * * * *", ["2026-01-15T07:05", "2026-01-15T07:10"]),
        ("0 9 * * MON-FRI", ["2026-01-15T09:00", "2026-01-16T09:00", "2026-01-19T09:00"]),
        ("0 9 * * 6,7", ["2026-01-17T09:00", "2026-01-18T09:00", "2026-01-24T09:00"]),
        ("0 9 * * sun", ["2026-01-18T09:00", "2026-01-25T09:00"]),
        ("15,45 8-10/2 * * *", ["2026-01-15T08:15", "2026-01-15T08:45", "2026-01-15T10:15"]),
        ("0 0 1 jan,JUL *", ["2026-07-01T00:00", "2027-01-01T00:00"]),
        ("0 0 31 * *", ["2026-01-31T00:00", "2026-03-31T00:00", "2026-05-31T00:00"]),
        ("0 0 L * *", ["2026-01-31T00:00", "2026-02-28T00:00", "2026-03-31T00:00"]),
        ("0 0 LW * *", ["2026-01-30T00:00", "2026-02-27T00:00", "2026-03-31T00:00"]),
        ("0 0 29 2 *", ["2028-02-29T00:00", "2032-02-29T00:00"]),
        ("0 0 * * MON#1", ["2026-02-02T00:00", "2026-03-02T00:00"]),
        ("0 0 * * 5L", ["2026-01-30T00:00", "2026-02-27T00:00"]),
        # Either day when both are restricted; both when one starts with a star.
        ("0 0 1 * MON", ["2026-01-19T00:00", "2026-01-26T00:00", "2026-02-01T00:00"]),
        ("0 0 */10 * MON", ["2026-05-11T00:00", "2026-06-01T00:00"]),
    ],
)
def test_what_expressions_mean(expression: str, expected: list[str]) -> None:
    assert next_ticks(Crontab(expression), "2026-01-15T07:00", len(expected)) == expected


def test_a_leap_day_on_a_sunday_may_be_forty_years_away() -> None:
    schedule = Crontab("0 0 29 2 */7")
    assert next_ticks(schedule, "2088-02-29T00:00", 1) == ["2128-02-29T00:00"]


@pytest.mark.parametrize(
    ("after", "tick"),
    [
        ("2026-01-15T06:59:59.999999", "2026-01-15T07:00"),
        ("2026-01-15T07:00:00.000999", "2026-01-15T07:01"),
        ("2026-01-15T07:00:59.999999", "2026-01-15T07:01"),
    ],
)
def test_strictly_later_at_the_millisecond(after: str, tick: str) -> None:
    assert Crontab("* * * * *").next_after(at(after)) == at(tick)


@pytest.mark.parametrize(
    ("expression", "complaint"),
    [
        ("60 * * * *", "bad minute '60': '60' is not within 0-59"),
        ("* 24 * * *", "bad hour '24': '24' is not within 0-23"),
        ("* * 0 * *", "bad day-of-month '0': '0' is not within 1-31, L or LW"),
        ("* * 1,32 * *", "bad day-of-month '32': '32' is not within 1-31, L or LW"),
        ("* * * 13 *", "bad month '13': '13' is not within 1-12 or JAN-DEC"),
        ("* * * JANUARY *", "bad month 'JANUARY': 'JANUARY' is not within 1-12 or JAN-DEC"),
        ("* * * * 8", "bad day-of-week '8': '8' is not within 0-7, SUN-SAT, 5L or MON#2"),
        ("* * * * MON#6", "bad day-of-week 'MON#6': 'MON#6' is not within 0-7, SUN-SAT"),
        ("* * * * L", "bad day-of-week 'L': 'L' is not within 0-7"),
        ("* * ? * *", "bad day-of-month '?': '?' is not within 1-31"),
        ("*/0 * * * *", "bad minute '*/0': the step '0' is not a positive whole number"),
        ("* */x * * *", "bad hour '*/X': the step 'X' is not a positive whole number"),
        ("5/ * * * *", "bad minute '5/': the step '' is not a positive whole number"),
        ("30-10 * * * *", "bad minute '30-10': the range runs backwards"),
        ("* * * * SAT-SUN", "bad day-of-week 'SAT-SUN': the range runs backwards"),
        ("1,,2 * * * *", "bad minute '': '' is not within 0-59"),
        ("-5 * * * *", "bad minute '-5': '' is not within 0-59"),
        ("٣ * * * *", "bad minute '٣': '٣' is not within 0-59"),
        ("9" * 400 + " * * * *", "is not within 0-59"),
    ],
)
def test_says_which_field_is_wrong_and_why(expression: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=r"expression .* has a ") as caught:
        Crontab(expression)
    assert complaint in str(caught.value)


@pytest.mark.parametrize(
    ("nickname", "meaning"),
    [
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("@monthly", "0 0 1 * *"),
        ("@weekly", "0 0 * * 0"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        (" @Hourly ", "0 * * * *"),
    ],
)
def test_nicknames(nickname: str, meaning: str) -> None:
    assert Crontab(nickname, "Asia/Tokyo") == Crontab(meaning, "Asia/Tokyo")
    assert Crontab(nickname).expression == meaning


@pytest.mark.parametrize("expression", ["@reboot", "@", "@daily *"])
def test_unknown_nicknames(expression: str) -> None:
    with pytest.raises(ValueError, match=r"is not one of @yearly, .* @hourly"):
        Crontab(expression)


@pytest.mark.parametrize(
    ("expression", "after", "ticks"),
    [
        ("*/20 * * * * *", "12:00:19.999", ["12:00:20", "12:00:40", "12:01:00"]),
        ("30 */5 * * * *", "12:00:30", ["12:05:30", "12:10:30"]),
        ("59 59 23 31 12 *", "12:00:00", ["23:59:59"]),
        ("0 0 12 * * *", "11:59:59.999", ["12:00:00"]),
    ],
)
def test_six_fields_begin_with_seconds(expression: str, after: str, ticks: list[str]) -> None:
    instant = datetime.fromisoformat(f"2026-03-01T{after}+00:00")
    for tick in ticks:
        instant = Crontab(expression).next_after(instant)
        assert instant.time().isoformat() == tick


def test_seconds_while_the_clock_is_changed() -> None:
    crontab = Crontab("30 30 2 * * *", "Europe/Berlin")
    spring, autumn = datetime(2026, 3, 28, 12, tzinfo=UTC), datetime(2026, 10, 24, 12, tzinfo=UTC)
    assert crontab.next_after(spring) == datetime(2026, 3, 29, 1, tzinfo=UTC)
    first = datetime(2026, 10, 25, 0, 30, 30, tzinfo=UTC)
    assert crontab.next_after(autumn) == first
    assert crontab.next_after(first) == datetime(2026, 10, 26, 1, 30, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("expression", "complaint"),
    [
        ("60 * * * * *", "bad second '60': '60' is not within 0-59"),
        ("0 60 * * * *", "bad minute '60': '60' is not within 0-59"),
        ("5 * * * * 8", "bad day-of-week '8': '8' is not within 0-7"),
        ("5,, * * * * *", "bad second '': '' is not within 0-59"),
    ],
)
def test_says_which_of_six_fields_is_wrong(expression: str, complaint: str) -> None:
    with pytest.raises(ValueError, match="has a bad") as caught:
        Crontab(expression)
    assert complaint in str(caught.value)


@pytest.mark.parametrize("expression", ["", "* * * *", "0 0 * * * * *"])
def test_five_fields(expression: str) -> None:
    with pytest.raises(ValueError, match="must have five fields: minute hour day-of-month month"):
        Crontab(expression)


@pytest.mark.parametrize(
    "expression", ["0 0 30 2 *", "0 0 31 2,4,6,9,11 *", "0 0 */31 * 5L", "0 0 */20 * MON#2"]
)
def test_an_expression_that_never_fires(expression: str) -> None:
    with pytest.raises(ValueError, match="never fires"):
        Crontab(expression)


def test_an_expression_has_a_sane_length() -> None:
    with pytest.raises(ValueError, match="longer than 500"):
        Crontab(",".join(["0"] * 300) + " * * * *")


def test_an_expression_is_text() -> None:
    with pytest.raises(TypeError, match="expression must be a str, not int"):
        Crontab(5)  # type: ignore[arg-type]  # what the test is about


def test_an_unknown_zone() -> None:
    with pytest.raises(ValueError, match="did you mean 'Asia/Kolkata'"):
        Crontab("* * * * *", "Asia/Kolkatta")


def test_a_naive_instant() -> None:
    with pytest.raises(ValueError, match="instant must be timezone-aware"):
        Crontab("* * * * *").next_after(datetime(2026, 1, 1))  # noqa: DTZ001 - what is tested


@pytest.mark.parametrize("expression", ["* * * * *", "0 0 29 2 *", "0 0 1 1 *"])
@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Tokyo"])
def test_the_end_of_time(expression: str, zone: str) -> None:
    with pytest.raises(EndOfTime, match="outside the years 1 to 9999"):
        Crontab(expression, zone).next_after(datetime.max.replace(tzinfo=UTC))


def test_one_schedule_however_it_is_spaced_and_cased() -> None:
    schedule = Crontab("0 9 * * MON-FRI", "America/New_York")
    same = Crontab("  0 9\t*  * mon-Fri ", "US/Eastern")
    assert same == schedule
    assert hash(same) == hash(schedule)
    assert same.text == schedule.text == "cron 0 9 * * MON-FRI in America/New_York"
    assert same.describe() == "cron 0 9 * * MON-FRI in US/Eastern"
    assert Crontab("0 9 * * MON-FRI") != schedule


def test_survives_pickling() -> None:
    schedule = Crontab("0 9 * * MON-FRI", "US/Eastern")
    assert pickle.loads(pickle.dumps(schedule)) == schedule  # noqa: S301 - our own bytes


# Expression and zone, an instant before the change, and the ticks that follow in UTC.
CHANGES = {
    "a skipped time comes when the gap ends": (
        ("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00"),
        ["2026-03-29T01:00", "2026-03-30T00:30"],
    ),
    "also with a star in the minute": (
        ("*/30 2 * * *", "Europe/Berlin", "2026-03-28T12:00"),
        ["2026-03-29T01:00", "2026-03-30T00:00", "2026-03-30T00:30"],
    ),
    "also with a star in the hour": (
        ("30 */2 * * *", "Europe/Berlin", "2026-03-28T23:45"),
        ["2026-03-29T01:00", "2026-03-29T02:30", "2026-03-29T04:30"],
    ),
    "it swallows no other time of that day": (
        ("15,30 2,3 * * *", "Europe/Berlin", "2026-03-28T12:00"),
        ["2026-03-29T01:00", "2026-03-29T01:15", "2026-03-29T01:30", "2026-03-30T00:15"],
    ),
    "all the skipped minutes are one tick": (
        ("*/20 * * * *", "Europe/Berlin", "2026-03-29T00:30"),
        ["2026-03-29T00:40", "2026-03-29T01:00", "2026-03-29T01:20"],
    ),
    "the repeated hour is silent": (
        ("*/30 * * * *", "Europe/Berlin", "2026-10-24T23:45"),
        ["2026-10-25T00:00", "2026-10-25T00:30", "2026-10-25T02:00", "2026-10-25T02:30"],
    ),
    "asked in the repeated hour, it has been": (
        ("30 1 * * *", "Europe/London", "2026-10-25T01:15"),
        ["2026-10-26T01:30"],
    ),
    "half an hour skipped, in Lord Howe": (
        ("0,15,45 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00"),
        ["2026-10-03T15:30", "2026-10-03T15:45", "2026-10-04T15:00"],
    ),
    "half an hour repeated, in Lord Howe": (
        ("*/15 * * * *", "Australia/Lord_Howe", "2026-04-04T14:30"),
        ["2026-04-04T14:45", "2026-04-04T15:30", "2026-04-04T15:45"],
    ),
    "midnight skipped, in São Paulo": (
        ("*/30 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00"),
        ["2018-11-04T03:00", "2018-11-05T02:00", "2018-11-05T02:30"],
    ),
    "the evening repeated, in Cairo": (
        ("0 0,23 * * *", "Africa/Cairo", "2026-10-29T12:00"),
        ["2026-10-29T20:00", "2026-10-29T22:00", "2026-10-30T21:00", "2026-10-30T22:00"],
    ),
    "a whole day skipped, in Apia": (
        ("0 6 30 12 *", "Pacific/Apia", "2011-12-01T00:00"),
        ["2011-12-30T10:00", "2012-12-29T16:00"],
    ),
}


@pytest.mark.parametrize(("case", "expected"), CHANGES.values(), ids=CHANGES)
def test_through_clock_changes(case: tuple[str, str, str], expected: list[str]) -> None:
    expression, zone, after = case
    assert next_ticks(Crontab(expression, zone), after, len(expected)) == expected


def test_without_a_zone_an_interval_never_pauses() -> None:
    found = list(ticks(Crontab("*/5 * * * *"), at("2026-10-24T12:00"), at("2026-10-25T12:00")))
    assert {later - earlier for earlier, later in pairwise(found)} == {timedelta(minutes=5)}


@pytest.mark.parametrize(
    ("expression", "after"),
    [
        ("*/5 * * * *", "2026-07-01"),
        ("* * * * *", "2026-10-25T00:59"),
        ("0 0 29 2 *", "2026-07-01"),
        ("0 0 * 2 MON#5", "2026-07-01"),
    ],
)
def test_no_search_through_the_minutes(expression: str, after: str) -> None:
    """Microseconds each, a millisecond for the rarest; a scan of minutes would take seconds."""
    schedule, instant = Crontab(expression, "Europe/Berlin"), at(after)
    start = stopwatch.process_time()
    for _ in range(50):
        schedule.next_after(instant)
    assert (stopwatch.process_time() - start) / 50 < 0.02
