"""Instants on the command line: how they are read and shown."""

import argparse
from datetime import UTC, datetime, timedelta

from duequeue.cli.durations import duration
from duequeue.clock import SystemClock
from duequeue.errors import InvalidArgument
from duequeue.instants import date_and_time, from_millis, parse_instant, to_millis, words_for


def instant(text: str) -> datetime:
    """Read an instant, which is a time from now such as 30m, `now`, or a date and time with zone.

    A date and time is ISO 8601, such as 2026-11-18T07:00:00+01:00 or 2026-11-18T06:00Z.
    """
    if text == "now":
        return now()
    if date_and_time(text) is None:
        return _from_now(text)
    try:
        return parse_instant(text)
    except InvalidArgument as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def now() -> datetime:
    """Return the present instant, as a queue without a clock of its own would."""
    return _whole(SystemClock().now())


def stamp(at: datetime) -> str:
    """Write an instant for programs to read: RFC 3339, in UTC, with milliseconds."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def stamp_or_none(at: datetime | None) -> str | None:
    """Write an instant for programs to read, if there is one."""
    return None if at is None else stamp(at)


def shown(text: str | None) -> str:
    """Show a stamp to people, to the second."""
    return "-" if text is None else f"{text[:10]} {text[11:19]}Z"


def distance(text: str | None, since: datetime) -> str:
    """Show how far a stamp lies ahead, as in "in 1.5 min", or back, as in "1.5 min ago"."""
    if text is None:
        return "-"
    span = datetime.fromisoformat(text) - since
    return f"in {words_for(span)}" if span > timedelta(0) else f"{words_for(-span)} ago"


def _from_now(text: str) -> datetime:
    try:
        span = duration(text)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither a time from now, such as 30m, nor a date and time with a zone, "
            "such as 2026-11-18T07:00:00+01:00"
        ) from error
    try:
        return now() + span
    except OverflowError as error:
        words = f"{text!r} lies outside the years 1 to 9999 of UTC"
        raise argparse.ArgumentTypeError(words) from error


def _whole(at: datetime) -> datetime:
    return from_millis(to_millis(at))
