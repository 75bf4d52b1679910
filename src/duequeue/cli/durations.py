"""Durations and backoffs on the command line."""

import argparse
from datetime import timedelta

from duequeue.backoff import Backoff
from duequeue.durations import parse_duration
from duequeue.errors import InvalidArgument


def duration(text: str) -> timedelta:
    """Read a duration; a plain number means seconds."""
    try:
        return parse_duration(text)
    except InvalidArgument as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def backoff(text: str) -> Backoff:
    """Read a backoff, of which only the first delay is required."""
    try:
        return Backoff.parse(text)
    except InvalidArgument as error:
        raise argparse.ArgumentTypeError(str(error)) from error
