"""Durations and backoffs as texts."""

from argparse import ArgumentTypeError
from datetime import timedelta

import pytest

from duequeue import Backoff, InvalidArgument
from duequeue.cli.durations import backoff, duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30", 30),
        ("1.5", 1.5),
        ("250ms", 0.25),
        ("5m", 300),
        ("2 h", 7200),
        ("1D", 86400),
        ("5 minutes", 300),
        ("1 day", 86400),
        ("2Hours", 7200),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "soon", "5x", "m", "1e999999d", "5m3", "٣", "5 weeks"])
def test_what_is_not_a_duration(text: str) -> None:
    with pytest.raises(ArgumentTypeError):
        duration(text)


def test_backoffs() -> None:
    assert backoff("5s:30m") == Backoff(timedelta(seconds=5), timedelta(minutes=30))
    assert backoff("5s") == Backoff(timedelta(seconds=5))
    assert backoff("2h") == Backoff(timedelta(hours=2), timedelta(hours=2))
    whole = Backoff(timedelta(seconds=5), timedelta(minutes=30), 3.5)
    assert backoff("5s:30m:3.5") == backoff("5s, 30 minutes, 3.5") == whole
    assert Backoff.parse("1s", whole) == Backoff(timedelta(seconds=1), whole.longest, whole.factor)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "'' is not a duration"),
        ("1s:soon", "'soon' is not a duration"),
        ("1s:1h:x", "'1s:1h:x' is not a backoff"),
        ("1s:1h:2:3", "'1s:1h:2:3' is not a backoff"),
        ("-1s", "first must be at least one millisecond"),
        ("1s:1h:nan", "factor must be at least 1"),
    ],
)
def test_what_is_not_a_backoff(text: str, words: str) -> None:
    with pytest.raises(InvalidArgument, match=f"^{words}"):
        Backoff.parse(text)
    with pytest.raises(ArgumentTypeError, match=f"^{words}"):
        backoff(text)
