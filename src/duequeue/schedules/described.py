"""Schedules read from their descriptions, which is all that the store keeps of them."""

import re
from datetime import datetime, time, timedelta

from duequeue.schedules.crontab import Crontab
from duequeue.schedules.ending import Ending
from duequeue.schedules.schedule import Daily, DescribedSchedule, Every

_ENDING = re.compile(r"(.+) until (\S+Z)")
_EVERY = re.compile(r"every (?:(\d+) )?(day|hour|minute|second|millisecond)s?")
_CRONTAB = re.compile(r"cron (.+) in (\S+)")
_DAILY = re.compile(r"daily at ([\d:., ]+?)(?: on ([a-z, ]+?))? in (\S+)")


def schedule_described(description: str) -> DescribedSchedule | None:
    """Return the built-in schedule that a description means, or None if its form is unknown.

    A user's own schedule may describe itself in the same words. Compare hashes to be sure.
    """
    try:
        if ending := _ENDING.fullmatch(description):
            endless = _endless(ending[1])
            return None if endless is None else Ending(endless, datetime.fromisoformat(ending[2]))
        return _endless(description)
    except (ValueError, OverflowError):
        return None


def _endless(description: str) -> DescribedSchedule | None:
    if found := _EVERY.fullmatch(description):
        return Every(timedelta(**{f"{found[2]}s": int(found[1] or 1)}))
    if found := _CRONTAB.fullmatch(description):
        return Crontab(found[1], found[2])
    if found := _DAILY.fullmatch(description):
        days = None if found[2] is None else found[2].split(", ")
        times = map(time.fromisoformat, found[1].split(", "))
        return Daily(times, found[3], weekdays=days)
    return None
