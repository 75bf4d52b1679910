"""Durations on the command line, such as 30, 1.5s, 5m or 2h."""

import argparse
from datetime import timedelta

from duequeue.backoff import Backoff
from duequeue.durations import parse_duration


def duration(text: str) -> timedelta:
    """Read a duration; a plain number means seconds."""
    try:
        return parse_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


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
