"""Instants on the command line."""

from argparse import ArgumentTypeError
from datetime import UTC, datetime, timedelta

import pytest

from duequeue.cli.when import distance, instant, now, shown, stamp, stamp_or_none

AT = datetime(2026, 11, 18, 6, 0, 0, 250_000, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    ["2026-11-18T07:00:00.250+01:00", "2026-11-18T06:00:00.2509Z", "2026-11-18 06:00:00.25+00:00"],
)
def test_a_date_and_time_with_its_zone(text: str) -> None:
    assert instant(text) == AT


@pytest.mark.parametrize(
    ("text", "span"), [("30m", 1800), ("1.5h", 5400), ("90", 90), ("-5m", -300)]
)
def test_a_time_from_now(text: str, span: int) -> None:
    earliest = now()
    assert earliest <= instant(text) - timedelta(seconds=span) <= now()


def test_now() -> None:
    earliest = now()
    assert earliest <= instant("now") <= now()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("2026-11-18T07:00", "has no zone: add Z for UTC"),
        ("2026-11-18", "has no zone"),
        ("tomorrow", "neither a time from now"),
        ("", "neither a time from now"),
        ("5 weeks", "neither a time from now"),
        ("999999999d", "lies outside the years 1 to 9999"),
    ],
)
def test_other_texts_are_refused(text: str, complaint: str) -> None:
    with pytest.raises(ArgumentTypeError, match=complaint):
        instant(text)


def test_instants_are_shown() -> None:
    assert stamp(AT) == "2026-11-18T06:00:00.250Z"
    assert stamp_or_none(None) is None
    assert shown(stamp(AT)) == "2026-11-18 06:00:00Z"
    assert (shown(None), distance(None, AT)) == ("-", "-")
    assert distance(stamp(AT), AT - timedelta(minutes=90)) == "in 1.5 h"
    assert distance(stamp(AT), AT + timedelta(seconds=5)) == "5.0 s ago"
