"""Durations on the command line, such as 30, 1.5s, 5m or 2h."""

import argparse
import re
from datetime import timedelta

from duequeue.backoff import Backoff

_UNITS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(-?\d+(?:\.\d*)?|-?\.\d+)\s*([a-z]*)", re.IGNORECASE)


def duration(text: str) -> timedelta:
    """Read a duration; a plain number means seconds."""
    found = _DURATION.fullmatch(text.strip())
    unit = None if found is None else _UNITS.get(found[2].lower())
    if found is None or unit is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a duration; write seconds, or a number with ms, s, m, h or d"
        )
    try:
        return timedelta(seconds=float(found[1]) * unit)
    except OverflowError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is too long") from error


def backoff(text: str) -> Backoff:
    """Read a backoff, as its first delay or as FIRST:LONGEST."""
    first, colon, longest = text.partition(":")
    try:
        if colon:
            return Backoff(first=duration(first), longest=duration(longest))
        begins = duration(first)
        return Backoff(first=begins, longest=max(begins, Backoff().longest))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
