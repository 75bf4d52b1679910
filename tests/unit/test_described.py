"""Schedules come back from their descriptions."""

from datetime import UTC, datetime, time, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duequeue import ConfigHash, Crontab, Daily, Every
from duequeue.schedules.described import schedule_described
from duequeue.schedules.ending import Ending
from duequeue.schedules.schedule import DescribedSchedule

ZONES = ["UTC", "Europe/Berlin", "US/Pacific", "Asia/Kolkata"]
ENDS = datetime(2027, 1, 1, 12, 30, 0, 250_000, tzinfo=UTC)

every = st.builds(Every, st.integers(1, 10**12).map(lambda millis: timedelta(milliseconds=millis)))
daily = st.builds(
    Daily,
    st.lists(
        st.times().map(lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000)), min_size=1
    ),
    st.sampled_from(ZONES),
    weekdays=st.none() | st.lists(st.sampled_from(["mon", "wed", "sun"]), min_size=1),
)
crontab = st.builds(
    Crontab,
    st.sampled_from(["*/5 * * * *", "30 7 * * MON-FRI", "15 30 7 LW * *", "@daily", "0 0 * * 5L"]),
    st.sampled_from(ZONES),
)
schedules = every | daily | crontab


@given(schedules, st.booleans())
def test_a_schedule_comes_back(schedule: DescribedSchedule, ends: bool) -> None:
    meant: DescribedSchedule = Ending(schedule, ENDS) if ends else schedule
    found = schedule_described(meant.describe())
    assert found is not None
    assert found.text == meant.text
    assert ConfigHash.of(found) == ConfigHash.of(meant)


def test_seconds_and_milliseconds_come_back() -> None:
    found = schedule_described(Daily([time(7, 0, 0, 500_000), "09:00:30"]).describe())
    assert found == Daily([time(7, 0, 0, 500_000), "09:00:30"])


@pytest.mark.parametrize(
    "description",
    [
        "",
        "whenever",
        "every 0 seconds",
        "every 99999999999999999999 days",
        "cron 61 * * * * in UTC",
        "cron * * * * * in Nowhere",
        "daily at 25:00 in UTC",
        "every hour until soonZ",
        "whenever until 2027-01-01T00:00:00.000Z",
    ],
)
def test_other_descriptions_mean_nothing(description: str) -> None:
    assert schedule_described(description) is None
