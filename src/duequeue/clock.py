"""Where `now` comes from."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from time import time_ns
from typing import Protocol

from duequeue.errors import InvalidArgument, InvalidType
from duequeue.instants import to_millis


class Clock(Protocol):
    """Anything that returns the present time as an aware datetime."""

    def now(self) -> datetime:
        """Return the present instant."""


_NO_INSTANT = "must lead to an instant in the years 1 to 9999 of UTC"


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        """Return the present instant in UTC."""
        return datetime.now(UTC)


def checked_clock(clock: Clock) -> Clock:
    """Return a clock, or raise unless its time can be stored."""
    if not callable(getattr(clock, "now", None)):
        raise InvalidType("clock", f"must have a method now(), which {clock!r} lacks")
    to_millis(clock.now(), "clock.now()")
    return clock


def millis_of(clock: Clock) -> Callable[[], int]:
    """Return the function that reads a clock in milliseconds since the epoch.

    The system's clock is read without a datetime in between, because every call needs it.
    """
    if type(clock) is SystemClock:
        return _system_millis
    return lambda: to_millis(clock.now(), "clock.now()")


def _system_millis() -> int:
    return time_ns() // 1_000_000


def _in_utc(instant: datetime, argument: str) -> datetime:
    to_millis(instant, argument)
    try:
        return instant.astimezone(UTC)
    except OverflowError:
        raise InvalidArgument(argument, _NO_INSTANT) from None


class ManualClock:
    """A clock that stands still until a test moves it, which wakes those who wait on it."""

    def __init__(self, start: datetime) -> None:
        self._lock = threading.Lock()
        self._now = _in_utc(start, "start")
        self._listeners: list[Callable[[], None]] = []

    def now(self) -> datetime:
        """Return the instant the clock was last moved to."""
        with self._lock:
            return self._now

    def advance(self, by: timedelta) -> None:
        """Move the clock by a duration."""
        with self._lock:
            try:
                self._now += by
            except OverflowError:
                raise InvalidArgument("by", _NO_INSTANT) from None
        self._notify_listeners()

    def set(self, to: datetime) -> None:
        """Move the clock to an instant, forwards or backwards."""
        with self._lock:
            self._now = _in_utc(to, "to")
        self._notify_listeners()

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` after every move; return a function that unsubscribes it."""
        with self._lock:
            self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def _notify_listeners(self) -> None:
        for listener in tuple(self._listeners):
            listener()
