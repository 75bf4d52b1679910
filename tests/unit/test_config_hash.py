"""Config hashes: taken as given, or computed from what a schedule does."""

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from duequeue.schedules.crontab import Crontab
from duequeue.schedules.ending import Ending
from duequeue.schedules.own_schedule import OwnSchedule
from duequeue.schedules.schedule import Daily, Every, Schedule
from duequeue.schedules.tick import ConfigHash

NEW_YEAR = datetime(2027, 1, 1, tzinfo=UTC)

# Written down: a change here would install every user's crons anew.
KNOWN: dict[str, Schedule] = {
    "5bab9955699b7773": Every(timedelta(minutes=15)),
    "87cd3681523fbc1c": Daily(["19:00", "07:00"], "US/Eastern"),
    "e5c362daa6f97c7e": Crontab("*/5 * * * *", "Europe/Berlin"),
    "7626085df6e799fd": Daily(["07:00", "19:00"], "Europe/Berlin"),
    "d82aa5fdaefec9d2": Daily(["07:00"], weekdays=["fri", "mon"]),
    "9c8d3d34abe57158": Crontab("*/10 * * * * *"),
    "08c30105655ce94f": Ending(Every(timedelta(minutes=15)), NEW_YEAR),
}


@pytest.mark.parametrize("text", ["v1", "Résumé 2026", "a" * 64, ".", " "])
def test_taken_as_it_is(text: str) -> None:
    assert str(ConfigHash(text)) == text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "1 to 64 characters, not 0"),
        ("a" * 65, "1 to 64 characters, not 65"),
        ("a/b", "must not contain '/'"),
        ("a\0b", "must not contain NUL"),
        ("\ud800", "not valid Unicode"),
    ],
)
def test_what_no_key_could_hold(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=f"config_hash .*{reason}"):
        ConfigHash(text)


def test_only_text() -> None:
    with pytest.raises(TypeError, match="config_hash must be a str, not int"):
        ConfigHash(1)  # type: ignore[arg-type]  # what the test is about


@pytest.mark.parametrize(("expected", "schedule"), KNOWN.items())
def test_the_same_for_ever(expected: str, schedule: Schedule) -> None:
    assert str(ConfigHash.of(schedule)) == expected


def test_the_same_in_every_process() -> None:
    program = (
        "from duequeue.schedules.tick import ConfigHash\n"
        "from duequeue.schedules.schedule import Daily\n"
        "print(ConfigHash.of(Daily({'07:00', '12:00', '19:00'}, 'GB')))\n"
    )
    answers = {
        subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(answers) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Every(timedelta(hours=24)), Every(timedelta(days=1))),
        (Daily(["07:00", "19:00"]), Daily(["19:00", "07:00", "19:00"])),
        (Daily(["07:00"], "Asia/Calcutta"), Daily(["07:00"], "Asia/Kolkata")),
        (Daily(["07:00"]), Daily(["07:00"], horizon=timedelta(days=9))),
        (Crontab("0 7 * * mon", "GB"), Crontab("0  7 * * MON", "Europe/London")),
        (Daily(["07:00"]), Daily(["07:00"], weekdays=range(7))),
        (Daily(["07:00"], weekdays=["mon"]), Daily(["07:00"], weekdays=["Monday", 0])),
        (Daily(["07:00"], "GB"), Daily(["07:00"], ZoneInfo("Europe/London"))),
        (Crontab("@daily", "GB"), Crontab("0 0 * * *", ZoneInfo("GB"))),
        (Crontab("0 0 7 * * *"), Crontab("0 7 * * *")),
    ],
)
def test_equal_for_schedules_that_tick_alike(one: Schedule, other: Schedule) -> None:
    assert ConfigHash.of(one) == ConfigHash.of(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Every(timedelta(hours=1)), Every(timedelta(hours=2))),
        (Daily(["07:00"]), Daily(["07:01"])),
        (Daily(["07:00"]), Daily(["07:00"], "Europe/London")),
        (Crontab("0 7 * * *"), Crontab("0 7 * * *", "Europe/London")),
        (Crontab("0 7 * * *"), Daily(["07:00"])),
        (Daily(["07:00"]), Daily(["07:00"], weekdays=["mon"])),
        (Crontab("0 7 * * *"), Crontab("30 0 7 * * *")),
        (Every(timedelta(hours=1)), Ending(Every(timedelta(hours=1)), NEW_YEAR)),
        (Ending(Every(timedelta(hours=1)), NEW_YEAR), Ending(Every(timedelta(hours=2)), NEW_YEAR)),
    ],
)
def test_different_for_others(one: Schedule, other: Schedule) -> None:
    assert ConfigHash.of(one) != ConfigHash.of(other)


class Mute:
    """A schedule without a text."""

    def next_after(self, instant: datetime) -> datetime:
        return instant + timedelta(days=1)


@pytest.mark.parametrize("schedule", [Mute(), OwnSchedule(Mute())])
def test_not_computed_without_a_text(schedule: Schedule) -> None:
    with pytest.raises(TypeError, match=r"has no `text` that is a str: pass config_hash="):
        ConfigHash.of(schedule)
