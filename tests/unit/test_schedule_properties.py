"""Schedules against a model that walks UTC minute by minute and looks at the local clock.

The model follows the rules as they are written, not as they are computed: a local minute that the
clock shows ticks when it first shows it; one that it jumps over ticks where the jump lands.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from importlib.resources import files
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

from hypothesis import example, given, settings
from hypothesis import strategies as st

from duequeue.schedules.crontab import Crontab
from duequeue.schedules.schedule import Daily, Every, Schedule, ticks

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)
MILLISECOND = timedelta(milliseconds=1)
ZONES = sorted(files("tzdata").joinpath("zones").read_text("utf-8").split())


@cache
def rules(zone: str) -> ZoneInfo:
    with files("tzdata").joinpath("zoneinfo", *zone.split("/")).open("rb") as data:
        return ZoneInfo.from_file(data)


def shown(instant: datetime, zone: str) -> datetime:
    return instant.astimezone(rules(zone)).replace(tzinfo=None, fold=0)


def model(
    zone: str, after: datetime, until: datetime, matches: Callable[[datetime], bool]
) -> list[datetime]:
    """Return the ticks in (after, until]; clocks never turn back by more than two days."""
    instant = after.replace(second=0, microsecond=0) - 2 * DAY
    previous = shown(instant, zone)
    first_shown = {previous: instant}
    jumped_over: dict[datetime, datetime] = {}
    while instant < until:
        instant += MINUTE
        local = shown(instant, zone)
        first_shown.setdefault(local, instant)
        skipped = previous + MINUTE
        while skipped < local:
            jumped_over.setdefault(skipped, instant)
            skipped += MINUTE
        previous = local
    comes = jumped_over | first_shown
    return sorted(
        {comes[local] for local in comes if matches(local) and after < comes[local] <= until}
    )


def assert_agree(
    schedule: Schedule, after: datetime, until: datetime, expected: list[datetime]
) -> None:
    """Follow the ticks, then ask from instants in between: also while a clock is turned back."""
    assert list(ticks(schedule, after, until)) == expected
    instant = after
    for tick in expected:
        while instant < tick:
            assert schedule.next_after(instant) == tick
            instant += 13 * MINUTE


@cache
def changes(zone: str, year: int) -> list[datetime]:
    """Return the midnights (UTC) before the clock changes of a year."""
    midnights = [datetime(year, 1, 1, tzinfo=UTC) + n * DAY for n in range(366)]
    offsets = [(midnight, midnight.astimezone(rules(zone)).utcoffset()) for midnight in midnights]
    return [one[0] for one, other in pairwise(offsets) if one[1] != other[1]]


@st.composite
def places_in_time(draw: st.DrawFn) -> tuple[str, datetime]:
    """Draw a zone and an instant, more often than not next to a change of its clock.

    From 1973 on all offsets are whole minutes, as the model needs them.
    """
    zone = draw(st.sampled_from(ZONES))
    year = draw(st.integers(1973, 2045))
    days = changes(zone, year) or [datetime(year, 6, 1, tzinfo=UTC)]
    minutes = draw(st.integers(-24 * 60, 48 * 60))
    return zone, draw(st.sampled_from(days)) + minutes * MINUTE


CLOCK_TIMES = st.builds(time, st.integers(0, 23), st.integers(0, 59))
EARLY_TIMES = st.builds(time, st.integers(0, 3), st.sampled_from([0, 1, 15, 29, 30, 59]))
TIMES = st.lists(CLOCK_TIMES | EARLY_TIMES, min_size=1, max_size=8)
PRECISE_TIMES = st.lists(st.times(), min_size=1, max_size=5)
INSTANTS = st.datetimes(
    datetime(1850, 1, 1),  # noqa: DTZ001 - hypothesis adds the zone
    datetime(2500, 1, 1),  # noqa: DTZ001 - hypothesis adds the zone
    timezones=st.just(UTC),
)


@settings(deadline=None)  # the model is slow, which is its charm
@given(places_in_time(), TIMES)
@example(("Pacific/Apia", datetime(2011, 12, 29, tzinfo=UTC)), [time(0), time(6), time(23, 59)])
@example(("America/Sao_Paulo", datetime(2018, 11, 3, tzinfo=UTC)), [time(0), time(0, 30), time(1)])
@example(("Australia/Lord_Howe", datetime(2026, 4, 4, tzinfo=UTC)), [time(1, 30), time(2)])
@example(("Africa/Cairo", datetime(2026, 10, 29, tzinfo=UTC)), [time(23, 30), time(0)])
def test_daily_agrees_with_the_model(place: tuple[str, datetime], times: list[time]) -> None:
    zone, after = place
    until = after + 2 * DAY
    expected = model(zone, after, until, lambda local: local.time() in times)
    assert_agree(Daily(times, zone), after, until, expected)


@dataclass(frozen=True)
class FieldModel:
    """A field of an expression: how it is written and which values it stands for."""

    text: str
    values: frozenset[int]


@st.composite
def fields(draw: st.DrawFn, low: int, high: int) -> FieldModel:
    start = draw(st.integers(low, high))
    end = draw(st.integers(start, high))
    step = draw(st.integers(1, high))
    some = draw(st.lists(st.integers(low, high), min_size=1, max_size=4))
    written = {
        "*": range(low, high + 1),
        f"*/{step}": range(low, high + 1, step),
        f"{start}-{end}": range(start, end + 1),
        f"{low}-{high}/{step}": range(low, high + 1, step),
        f"{start}/{step}": range(start, high + 1, step),
        ",".join(map(str, some)): some,
    }
    text = draw(st.sampled_from(list(written)))
    return FieldModel(text, frozenset(written[text]))


ANY_MONTH = st.just(FieldModel("*", frozenset(range(1, 13))))
ANY_DAY = st.just(FieldModel("*", frozenset(range(1, 32))))
ANY_WEEKDAY = st.just(FieldModel("*", frozenset(range(8))))
EXPRESSIONS = st.tuples(
    fields(0, 59),
    fields(0, 23),
    ANY_DAY | fields(1, 31),
    ANY_MONTH,
    ANY_WEEKDAY | fields(0, 7),
)


def matches(expression: tuple[FieldModel, ...], local: datetime) -> bool:
    minute, hour, day, month, weekday = expression
    in_time = local.minute in minute.values and local.hour in hour.values
    on_day = local.day in day.values
    on_weekday = not weekday.values.isdisjoint({local.isoweekday(), local.isoweekday() % 7})
    if day.text.startswith("*") or weekday.text.startswith("*"):
        return in_time and local.month in month.values and on_day and on_weekday
    return in_time and local.month in month.values and (on_day or on_weekday)


@settings(deadline=None)
@given(places_in_time(), EXPRESSIONS)
def test_crontab_agrees_with_the_model(
    place: tuple[str, datetime], expression: tuple[FieldModel, ...]
) -> None:
    zone, after = place
    until = after + 2 * DAY
    schedule = Crontab(" ".join(each.text for each in expression), zone)
    expected = model(zone, after, until, lambda local: matches(expression, local))
    assert_agree(schedule, after, until, expected)


EXACT_SCHEDULES: st.SearchStrategy[Schedule] = st.one_of(
    st.builds(Daily, PRECISE_TIMES, st.sampled_from(ZONES)),
    st.builds(
        Crontab,
        st.sampled_from(["* * * * *", "*/7 */3 * * *", "0 0 L * *", "30 2 * * SUN", "0 0 29 2 *"]),
        st.sampled_from(ZONES),
    ),
    st.builds(Every, st.integers(1, 10**13).map(lambda millis: millis * MILLISECOND)),
)


@given(EXACT_SCHEDULES, INSTANTS)
def test_ticks_are_later_than_now_and_strictly_increasing(
    schedule: Schedule, instant: datetime
) -> None:
    chain = [instant, *islice(ticks(schedule, instant), 5)]
    assert all(earlier < later for earlier, later in pairwise(chain))
    assert all(tick.tzinfo is UTC and tick.microsecond % 1000 == 0 for tick in chain[1:])


@given(EXACT_SCHEDULES, INSTANTS)
def test_nothing_ticks_between_an_instant_and_its_next_tick(
    schedule: Schedule, instant: datetime
) -> None:
    tick = schedule.next_after(instant)
    assert schedule.next_after(instant + (tick - instant) / 2) == tick
    assert schedule.next_after(tick - MILLISECOND) == tick


@given(st.sampled_from(ZONES), PRECISE_TIMES, st.dates(date(1850, 1, 2), date(2300, 1, 1)))
def test_each_local_time_of_a_day_comes_once(zone: str, times: list[time], day: date) -> None:
    """Also to the millisecond, and in the odd offsets of long ago."""
    start = datetime.combine(day, time(), UTC)
    found = list(ticks(Daily(times, zone), start - 2 * DAY, start + 3 * DAY))
    exact = {each.replace(microsecond=each.microsecond // 1000 * 1000) for each in times}
    for local in (datetime.combine(day, each) for each in exact):
        readings = [tick for tick in found if shown(tick, zone) == local]
        if readings:
            assert len(readings) == 1
            assert not came_before(local, readings[0], zone)
        else:
            assert any(jumps_over(local, tick, zone) for tick in found)


def came_before(local: datetime, instant: datetime, zone: str) -> bool:
    """Tell whether the clock showed a local time already, before it was turned back."""
    minutes = range(1, 26 * 60)
    return any(shown(instant - n * MINUTE, zone) == local for n in minutes)


def jumps_over(local: datetime, instant: datetime, zone: str) -> bool:
    return shown(instant - MILLISECOND, zone) < local < shown(instant, zone)


@given(st.integers(1, 31_536_000_000_000), INSTANTS)
@example(1, datetime(2026, 1, 1, microsecond=999, tzinfo=UTC))
def test_periods_divide_the_time_since_the_epoch(millis: int, instant: datetime) -> None:
    period = millis * MILLISECOND
    tick = Every(period).next_after(instant)
    assert (tick - EPOCH) % period == timedelta(0)
    assert timedelta(0) < tick - instant <= period
