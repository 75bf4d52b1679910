"""The times and the weekdays of a `Daily`, checked and put in order."""

import re
from collections.abc import Iterable
from datetime import time

from duequeue.errors import InvalidArgument, InvalidType

_CLOCK_TIME = re.compile(r"[0-9]{2}:[0-9]{2}(:[0-9]{2})?")
# The names of the days, in the order of `datetime.weekday()`.
WEEK = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_FULL_NAMES = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def checked_weekdays(weekdays: Iterable[str | int]) -> tuple[str, ...]:
    """Return the names of days in the order of the week, each once."""
    if isinstance(weekdays, str) or not isinstance(weekdays, Iterable):
        raise InvalidType(
            "weekdays", f"must be a list of days such as ['mon', 'fri'], not {weekdays!r}"
        )
    given = {_checked_weekday(each) for each in weekdays}
    if not given:
        raise InvalidArgument("weekdays", "must hold at least one day, such as 'mon'")
    return tuple(name for name in WEEK if name in given)


def _checked_weekday(given: object) -> str:
    if isinstance(given, str):
        name = given.lower()
        if name in WEEK:
            return name
        if name in _FULL_NAMES:
            return WEEK[_FULL_NAMES.index(name)]
    elif not isinstance(given, int) or isinstance(given, bool):
        raise InvalidType("weekdays", f"must hold names or numbers of days, not {given!r}")
    elif 0 <= given < len(WEEK):
        return WEEK[given]
    raise InvalidArgument(
        "weekdays", f"must hold 'mon' to 'sun', or 0 to 6 from Monday to Sunday, not {given!r}"
    )


def checked_times(times: Iterable[time | str]) -> tuple[time, ...]:
    """Return naive local times in the order of the day, each once."""
    if isinstance(times, str) or not isinstance(times, Iterable):
        raise InvalidType("times", f"must be a list of times such as ['07:00'], not {times!r}")
    checked = tuple(sorted({_checked_time(each) for each in times}))
    if not checked:
        raise InvalidArgument("times", "must hold at least one time of day, such as '07:00'")
    return checked


def _checked_time(given: time | str) -> time:
    """Return a naive local time, floored to the millisecond as all instants are."""
    if isinstance(given, str):
        given = _parsed_time(given)
    if not isinstance(given, time):
        raise InvalidType("times", f"must hold datetime.time or 'HH:MM' values, not {given!r}")
    if given.tzinfo is not None:
        raise InvalidArgument(
            "times", f"must not carry a zone of their own: {given!r}; pass zone instead"
        )
    return given.replace(microsecond=given.microsecond // 1000 * 1000, fold=0)


def _parsed_time(text: str) -> time:
    try:
        if _CLOCK_TIME.fullmatch(text):
            return time.fromisoformat(text)
    except ValueError:
        pass
    raise InvalidArgument(
        "times", f"must be 'HH:MM' or 'HH:MM:SS' from 00:00 to 23:59:59, not {text!r}"
    )
