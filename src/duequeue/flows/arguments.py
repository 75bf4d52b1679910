"""Arguments of the faces, checked and turned into milliseconds."""

from datetime import datetime, timedelta

from duequeue.instants import EPOCH, MILLISECOND, span_to_millis, to_millis

_MOST = 2**31 - 1
_EARLIEST = (datetime.min.replace(tzinfo=EPOCH.tzinfo) - EPOCH) // MILLISECOND
_LATEST = (datetime.max.replace(tzinfo=EPOCH.tzinfo) - EPOCH) // MILLISECOND


def due_millis(due: datetime | timedelta | None, now: int) -> int:
    """Return the instant that `due` means at `now`."""
    if due is None:
        return now
    if isinstance(due, datetime):
        instant = to_millis(due, "due")
    elif isinstance(due, timedelta):
        instant = now + due // MILLISECOND
    else:
        raise TypeError(f"due must be a datetime, a timedelta or None, not {type(due).__name__}")
    if not _EARLIEST <= instant <= _LATEST:
        raise ValueError(f"due must lie in the years 1 to 9999 of UTC, not at {due!r}")
    return instant


def checked_limit(limit: int) -> int:
    """Return a limit that every database can count to."""
    if type(limit) is not int:
        raise TypeError(f"limit must be an int, not {type(limit).__name__}")
    return max(0, min(limit, _MOST))


def timeout_millis(timeout: timedelta | float | None) -> float | None:
    """Return a timeout in milliseconds; a plain number means seconds."""
    if timeout is None:
        return None
    if isinstance(timeout, int | float) and not isinstance(timeout, bool):
        millis = timeout * 1000.0
    elif isinstance(timeout, timedelta):
        millis = timeout / MILLISECOND
    else:
        raise TypeError(f"timeout must be a timedelta or None, not {type(timeout).__name__}")
    if not millis >= 0:
        raise ValueError(f"timeout must not be negative, not {timeout!r}")
    return millis


def delay_millis(delay: timedelta) -> int:
    """Return a delay in milliseconds."""
    millis = span_to_millis(delay, "delay")
    if millis < 0:
        raise ValueError(f"delay must not be negative, not {delay!r}")
    return millis
