"""Aware datetimes at the edge, whole milliseconds since the epoch inside."""

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Annotated, TypeAlias

from msgspec import Meta

from duequeue.errors import InvalidArgument, InvalidType, StoreError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
# In JSON, an instant is a text with milliseconds, in UTC.
InstantText: TypeAlias = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
LONGEST = timedelta(days=365_000)
_LONGEST_SHOWN = 40

# The first and the last instant that a datetime can hold.
EARLIEST = (datetime.min.replace(tzinfo=UTC) - EPOCH) // MILLISECOND
LATEST = (datetime.max.replace(tzinfo=UTC) - EPOCH) // MILLISECOND


def to_millis(instant: datetime, argument: str = "instant") -> int:
    """Floor an aware datetime to milliseconds since the epoch."""
    if not isinstance(instant, datetime):
        raise InvalidType(argument, f"must be a datetime, not {type(instant).__name__}")
    if instant.utcoffset() is None:
        raise InvalidArgument(
            argument,
            f"must be timezone-aware; {instant!r} is naive: "
            "say which zone it means, for example datetime.now(UTC)",
        )
    return (instant - EPOCH) // MILLISECOND


def from_millis(millis: int) -> datetime:
    """Return the UTC datetime of an instant in milliseconds since the epoch."""
    return EPOCH + timedelta(milliseconds=millis)


def parse_instant(text: str, argument: str = "instant") -> datetime:
    """Read a date and time with its zone, as ISO 8601 writes it, to the millisecond."""
    shown = repr(text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…")
    found = date_and_time(text)
    if found is None:
        words = f"{shown} is not a date and time with its zone, such as 2030-01-31T09:00:00+01:00"
        raise InvalidArgument(argument, text=words)
    if found.utcoffset() is None:
        words = f"{shown} has no zone: add Z for UTC, or an offset such as +01:00"
        raise InvalidArgument(argument, text=words)
    try:
        return from_millis(to_millis(found))
    except OverflowError:
        words = f"{shown} lies outside the years 1 to 9999 of UTC"
        raise InvalidArgument(argument, text=words) from None


def date_and_time(text: str) -> datetime | None:
    """Read a date and time, with a zone or without; None if it is something else."""
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:
        return None


def stored_instant(millis: int, key: str, column: str) -> datetime:
    """Return the UTC datetime of an instant in a row; raise if the row was damaged."""
    try:
        return from_millis(millis)
    except OverflowError as error:
        raise StoreError(
            f"the message {key!r} has {millis} in its column {column}, which is not an instant in "
            "the years 1 to 9999"
        ) from error


def nearest_instant(millis: int) -> datetime:
    """Return the UTC datetime of an instant, or the nearest one that exists."""
    return from_millis(min(max(millis, EARLIEST), LATEST))


def instant_or_none(millis: int | None) -> datetime | None:
    """Return the UTC datetime of an instant, if there is one."""
    return None if millis is None else from_millis(millis)


def span_to_millis(span: timedelta, argument: str) -> int:
    """Floor a duration to whole milliseconds."""
    if not isinstance(span, timedelta):
        raise InvalidType(argument, f"must be a timedelta, not {type(span).__name__}")
    if not -LONGEST <= span <= LONGEST:
        raise InvalidArgument(argument, f"must be at most {LONGEST.days} days, not {span!r}")
    return span // MILLISECOND


def positive_millis(span: timedelta, argument: str) -> int:
    """Floor a duration that must last at least a millisecond."""
    millis = span_to_millis(span, argument)
    if millis < 1:
        raise InvalidArgument(argument, f"must be at least one millisecond, not {span!r}")
    return millis


def due_millis(due: datetime | timedelta | None, now: int) -> int:
    """Return the instant that `due` means at `now`."""
    if due is None:
        return now
    if isinstance(due, datetime):
        instant = to_millis(due, "due")
    elif isinstance(due, timedelta):
        instant = now + due // MILLISECOND
    else:
        raise InvalidType(
            "due", f"must be a datetime, a timedelta or None, not {type(due).__name__}"
        )
    if not EARLIEST <= instant <= LATEST:
        raise InvalidArgument("due", f"must lie in the years 1 to 9999 of UTC, but it is {due!r}")
    return instant


def timeout_millis(timeout: timedelta | float) -> float:
    """Return a timeout in milliseconds; a plain number means seconds."""
    if isinstance(timeout, int | float) and not isinstance(timeout, bool):
        millis = timeout * 1000.0
    elif isinstance(timeout, timedelta):
        millis = timeout / MILLISECOND
    else:
        raise InvalidType(
            "timeout", f"must be a timedelta, seconds or None, not {type(timeout).__name__}"
        )
    if not millis >= 0:
        raise InvalidArgument("timeout", f"must not be negative, but it is {timeout!r}")
    return millis


def words_for(span: timedelta) -> str:
    """Write a duration for people to read, as in "1.5 min"."""
    seconds = max(0.0, span.total_seconds())
    for unit, size in (("days", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        if seconds >= size * (2 if unit == "days" else 1):
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds * 1000:.0f} ms"


@lru_cache(maxsize=1024)  # the deliveries of a batch share most of their instants
def instant_text(instant: datetime) -> str:
    """Write an instant in UTC, with milliseconds."""
    text = instant.astimezone(UTC).isoformat(timespec="milliseconds")
    return text.removesuffix("+00:00") + "Z"
