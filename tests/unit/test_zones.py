"""Zone names, their aliases, and where the rules come from."""

import os
import subprocess
import sys
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path

import pytest

from duequeue.schedules.zones import canonical_name, wall_clock

ALIASES = [
    ("US/Eastern", "America/New_York"),
    ("Asia/Calcutta", "Asia/Kolkata"),
    ("Asia/Saigon", "Asia/Ho_Chi_Minh"),
    ("Europe/Kiev", "Europe/Kyiv"),
    ("GB", "Europe/London"),
    ("Zulu", "UTC"),
    ("Iceland", "Atlantic/Reykjavik"),
]


@pytest.mark.parametrize(("alias", "name"), ALIASES)
def test_aliases_share_one_canonical_name(alias: str, name: str) -> None:
    assert canonical_name(alias) == canonical_name(name)


def test_a_canonical_name_is_its_own() -> None:
    assert canonical_name("America/New_York") == "America/New_York"


def test_neighbours_with_rules_of_their_own_stay_apart() -> None:
    assert canonical_name("Europe/Berlin") != canonical_name("Europe/Paris")


@pytest.mark.parametrize(
    ("zone", "nearest"),
    [
        ("Europe/Berln", "Europe/Berlin"),
        ("europe/berlin", "Europe/Berlin"),
        ("Berlin", "Europe/Berlin"),
        ("New York", "America/New_York"),
        ("utc", "UTC"),
        ("America/NewYork", "America/New_York"),
    ],
)
def test_an_unknown_zone_suggests_the_nearest(zone: str, nearest: str) -> None:
    with pytest.raises(ValueError, match=f"did you mean '{nearest}'"):
        canonical_name(zone)


@pytest.mark.parametrize(
    "zone", ["", "?", "+02:00", "../zones", "Europe", "Europe/Berlin ", "tzdata.zi", "localtime"]
)
def test_nonsense_is_refused(zone: str) -> None:
    with pytest.raises(ValueError, match=r"zone .* is unknown"):
        canonical_name(zone)


def test_a_zone_is_given_by_name() -> None:
    with pytest.raises(TypeError, match="name of a zone or a ZoneInfo, not timezone"):
        canonical_name(UTC)  # type: ignore[arg-type]  # what the test is about


def test_rules_do_not_depend_on_the_system(tmp_path: Path) -> None:
    """One system has no database, the other's says that London is in Tokyo."""
    with files("tzdata").joinpath("zoneinfo", "Asia", "Tokyo").open("rb") as tokyo:
        (tmp_path / "Europe").mkdir()
        (tmp_path / "Europe" / "London").write_bytes(tokyo.read())
    program = (
        "from datetime import UTC, datetime\n"
        "from duequeue.schedules.schedule import Daily\n"
        "schedule = Daily(['12:00'], 'Europe/London')\n"
        "print(schedule.next_after(datetime(2026, 1, 1, tzinfo=UTC)), schedule.text)\n"
    )
    answers = [
        subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"PYTHONTZPATH": path},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for path in ("", str(tmp_path))
    ]
    assert answers == ["2026-01-01 12:00:00+00:00 daily at 12:00 in Europe/London\n"] * 2


def test_the_rules_are_read_once() -> None:
    assert wall_clock("Europe/Berlin") is wall_clock("Europe/Berlin")


def test_a_wall_clock_reads_local_time() -> None:
    noon = datetime(2026, 7, 1, 12, tzinfo=UTC)
    assert wall_clock("Asia/Kolkata").highest_shown(noon) == datetime.fromisoformat(
        "2026-07-01T17:30"
    )
