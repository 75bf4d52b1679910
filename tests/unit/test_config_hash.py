"""Config hashes: taken as given, or computed from what a schedule does."""

import os
import subprocess
import sys
from datetime import timedelta

import pytest

from duequeue.schedules.crontab import Crontab
from duequeue.schedules.schedule import Daily, Every, Schedule
from duequeue.schedules.tick import ConfigHash

# Written down: a change here would install every user's crons anew.
KNOWN: dict[str, Schedule] = {
    "5bab9955699b7773": Every(timedelta(minutes=15)),
    "87cd3681523fbc1c": Daily(["19:00", "07:00"], "US/Eastern"),
    "e5c362daa6f97c7e": Crontab("*/5 * * * *", "Europe/Berlin"),
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
    ],
)
def test_different_for_others(one: Schedule, other: Schedule) -> None:
    assert ConfigHash.of(one) != ConfigHash.of(other)
