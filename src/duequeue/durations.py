"""Durations as text, such as 30, 1.5s, 5m or 2 hours."""

import re
from datetime import timedelta
from typing import Annotated, TypeAlias

from msgspec import Meta

from duequeue.errors import InvalidArgument, InvalidType

# A duration in JSON.
Duration: TypeAlias = Annotated[
    str | int | float,
    Meta(description='seconds, or a number with ms, s, m, h or d, such as "1.5s" or "30 minutes"'),
]

_UNITS = {
    "": 1.0,
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 0.001),
    **dict.fromkeys(("s", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hour", "hours"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86400.0),
}
_DURATION = re.compile(r"(-?\d+(?:\.\d*)?|-?\.\d+)\s*([a-z]*)", re.IGNORECASE | re.ASCII)
_LONGEST_SHOWN = 40


def parse_duration(text: str) -> timedelta:
    """Read a duration; a plain number means seconds."""
    if not isinstance(text, str):
        raise InvalidType("duration", f"must be a str, not {type(text).__name__}")
    found = _DURATION.fullmatch(text.strip())
    unit = None if found is None else _UNITS.get(found[2].lower())
    shown = repr(text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…")
    if found is None or unit is None:
        raise InvalidArgument(
            "duration",
            text=f"{shown} is not a duration; write seconds, or a number with ms, s, m, h or d",
        )
    try:
        return timedelta(seconds=float(found[1]) * unit)
    except (OverflowError, ValueError) as error:
        raise InvalidArgument("duration", text=f"{shown} is too long for a duration") from error


def duration_of(given: str | float, argument: str) -> timedelta:
    """Read a duration of JSON, which must not be negative."""
    try:
        found = parse_duration(given if isinstance(given, str) else f"{given:f}")
    except InvalidArgument as error:
        raise InvalidArgument(argument, text=f"{argument}: {error}") from None
    if found < timedelta(0):
        raise InvalidArgument(argument, "must not be negative")
    return found


def duration_text(span: timedelta) -> str:
    """Write a whole number of milliseconds in the largest unit that fits, as in 5m."""
    millis = span // timedelta(milliseconds=1)
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000)):
        if millis % size == 0:
            return f"{millis // size}{unit}"
    return f"{millis}ms"
