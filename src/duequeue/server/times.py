"""Instants and durations as the API writes and reads them."""

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Annotated, TypeAlias

from msgspec import Meta

from duequeue.durations import duration_of, parse_duration
from duequeue.errors import InvalidArgument
from duequeue.instants import from_millis, instant_text, parse_instant
from duequeue.server.problems import invalid

Instant: TypeAlias = Annotated[datetime, Meta(tz=True)]


@lru_cache(maxsize=1024)  # the deliveries of a batch share most of their instants
def millis_text(millis: int) -> str:
    """Write an instant that is given in milliseconds since the epoch."""
    return instant_text(from_millis(millis))


def instant_text_or_none(instant: datetime | None) -> str | None:
    """Write an instant, if there is one."""
    return None if instant is None else instant_text(instant)


def read_instant(text: str, argument: str) -> datetime:
    """Read an instant of a query or a header."""
    try:
        # A plus sign in a query means a space, unless it is written as %2B.
        return parse_instant(text.strip().replace(" ", "+"))
    except InvalidArgument as error:
        raise invalid(argument, f"{argument}: {error}") from None


def read_duration(given: str | float, argument: str) -> timedelta:
    """Read a duration, which must not be negative."""
    try:
        return duration_of(given, argument)
    except InvalidArgument as error:
        raise invalid(argument, str(error)) from None


def read_due(
    due_at: datetime | None, delay: str | float | None, argument: str = ""
) -> datetime | timedelta | None:
    """Return when a message is due, which is said by an instant, a delay or neither."""
    if due_at is not None and delay is not None:
        raise invalid(f"{argument}delay", "give either due_at or delay, not both")
    if delay is None:
        return due_at
    found = read_duration(delay, f"{argument}delay")
    try:
        datetime.now(UTC) + found
    except OverflowError:
        raise invalid(f"{argument}delay", "delay must end before the year 10000") from None
    return found


def read_due_text(due_at: str | None, delay: str | None) -> datetime | timedelta | None:
    """Do the same for texts of a query or of headers."""
    instant = None if due_at is None else read_instant(due_at, "due_at")
    return read_due(instant, delay)


def read_expiry(
    given: str | float | None, argument: str = "expires"
) -> datetime | timedelta | None:
    """Read when a message expires, which is an instant or a time from now."""
    if given is None:
        return None
    if not isinstance(given, str):
        return read_duration(given, argument)
    try:
        return parse_duration(given)
    except InvalidArgument:
        return read_instant(given, argument)
