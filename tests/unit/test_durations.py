"""Durations as they are written on the command line."""

from argparse import ArgumentTypeError
from datetime import timedelta

import pytest

from duequeue import Backoff
from duequeue.cli.durations import backoff, duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30", 30), ("1.5", 1.5), ("250ms", 0.25), ("5m", 300), ("2 h", 7200), ("1D", 86400)],
)
def test_durations(text: str, seconds: float) -> None:
    assert duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "soon", "5x", "m", "1e999999d", "5m3"])
def test_what_is_not_a_duration(text: str) -> None:
    with pytest.raises(ArgumentTypeError):
        duration(text)


def test_backoffs() -> None:
    assert backoff("5s:30m") == Backoff(timedelta(seconds=5), timedelta(minutes=30))
    assert backoff("5s") == Backoff(timedelta(seconds=5))
    assert backoff("2h") == Backoff(timedelta(hours=2), timedelta(hours=2))
