"""Durations as text, such as 30, 1.5s, 5m or 2h."""

import re
from datetime import timedelta

from duequeue.errors import InvalidArgument

_UNITS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(-?\d+(?:\.\d*)?|-?\.\d+)\s*([a-z]*)", re.IGNORECASE | re.ASCII)


def parse_duration(text: str) -> timedelta:
    """Read a duration; a plain number means seconds."""
    found = _DURATION.fullmatch(text.strip())
    unit = None if found is None else _UNITS.get(found[2].lower())
    if found is None or unit is None:
        raise InvalidArgument(
            "duration",
            text=f"{text!r} is not a duration; write seconds, or a number with ms, s, m, h or d",
        )
    try:
        return timedelta(seconds=float(found[1]) * unit)
    except (OverflowError, ValueError) as error:
        raise InvalidArgument("duration", text=f"{text!r} is too long") from error
