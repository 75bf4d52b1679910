"""Durations and backoffs on the command line."""

import argparse
from datetime import timedelta

from duequeue.backoff import Backoff
from duequeue.durations import duration_text, parse_duration
from duequeue.errors import InvalidArgument


def duration(text: str) -> timedelta:
    """Read a duration; a plain number means seconds."""
    try:
        return parse_duration(text)
    except InvalidArgument as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def add_duration(
    parser: argparse.ArgumentParser, name: str, default: timedelta, about: str
) -> None:
    """Add an option that takes a duration, whose help says what the default is."""
    about = f"{about} (default: {duration_text(default)})"
    parser.add_argument(name, type=duration, default=default, metavar="DURATION", help=about)


def backoff_text(backoff: Backoff) -> str:
    """Write a backoff as on the command line, such as 10s:1d:5."""
    first, longest = duration_text(backoff.first), duration_text(backoff.longest)
    return f"{first}:{longest}:{backoff.factor:g}"


def backoff(text: str) -> Backoff:
    """Read a backoff, of which only the first delay is required."""
    try:
        return Backoff.parse(text)
    except InvalidArgument as error:
        raise argparse.ArgumentTypeError(str(error)) from error
