"""Ticks, the messages that a schedule puts in, and the keys that make each unique."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Generic, NamedTuple

from typing_extensions import TypeVar

from duequeue.errors import InvalidArgument
from duequeue.instants import from_millis, to_millis
from duequeue.message import MAX_KEY_LENGTH, checked_text
from duequeue.schedules.schedule import Schedule, text_of

MAX_HASH_LENGTH = 64
_COMPUTED_LENGTH = 16


@dataclass(frozen=True, slots=True)
class ConfigHash:
    """The name of a configuration, taken as it is. It has 1 to 64 characters and no `/`."""

    text: str

    def __post_init__(self) -> None:
        text = checked_text(self.text, "config_hash", MAX_HASH_LENGTH)
        if "/" in text:
            raise InvalidArgument("config_hash", f"must not contain '/', which ends it: {text!r}")
        object.__setattr__(self, "text", text)

    def __str__(self) -> str:
        return self.text

    @classmethod
    def of(cls, schedule: Schedule) -> "ConfigHash":
        """Return the hash of a schedule's text, which is equal for schedules that tick alike."""
        return cls(sha256(text_of(schedule).encode()).hexdigest()[:_COMPUTED_LENGTH])

    @classmethod
    def stored(cls, text: str) -> "ConfigHash":
        """Return a name that a store has, even one that is refused today, so that it can go."""
        found = object.__new__(cls)
        object.__setattr__(found, "text", text)
        return found


T = TypeVar("T", default=Any)

_TIME_LENGTH = len("2026-11-15T07:00:00.000Z")
MAX_PREFIX_LENGTH = MAX_KEY_LENGTH - len("//") - MAX_HASH_LENGTH - _TIME_LENGTH

# A key is read from the right, because a prefix may hold slashes. Hash and time hold none.
_TICK_KEY = re.compile(
    r"(.+)/([^/]+)/([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z)", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class CronMessage(Generic[T]):
    """A message of a cron. Its key comes from `at`; it is due at `deliver_at`, or else at `at`."""

    payload: T
    at: datetime
    deliver_at: datetime | None = None
    headers: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        at, deliver_at = self.at, self.deliver_at
        # A schedule's own ticks are already in UTC and whole milliseconds, and need no conversion.
        if type(at) is not datetime or at.tzinfo is not UTC or at.microsecond % 1000:
            object.__setattr__(self, "at", _floored(at, "at"))
        if deliver_at is not None:
            object.__setattr__(self, "deliver_at", _floored(deliver_at, "deliver_at"))

    @property
    def due_at(self) -> datetime:
        """When the message is due."""
        return self.deliver_at or self.at


class TickKey(NamedTuple):
    """The parts of a tick's key."""

    prefix: str
    config_hash: ConfigHash
    at: datetime


def tick_key(prefix: str, config_hash: ConfigHash, at: datetime) -> str:
    """Return `<prefix>/<config hash>/<UTC time to the millisecond>`, sortable by time.

    The prefix is one that `checked_prefix` has returned, and `at` that of a `CronMessage`.
    """
    time = at.isoformat(timespec="milliseconds").removesuffix("+00:00")
    return f"{prefix}/{config_hash.text}/{time}Z"


def parse_tick_key(key: str) -> TickKey:
    """Return the parts of a key that `tick_key` made."""
    parts = _TICK_KEY.fullmatch(key)
    if parts is None:
        raise InvalidArgument("key", f"is not <prefix>/<config hash>/<UTC time>: {key!r}")
    prefix, config_hash, time = parts.groups()
    return TickKey(checked_prefix(prefix), ConfigHash(config_hash), datetime.fromisoformat(time))


def find_tick(key: str) -> TickKey | None:
    """Return the parts of a key, or None if it is not the key of a tick."""
    try:
        return parse_tick_key(key)
    except ValueError:
        return None


def checked_prefix(prefix: str) -> str:
    """Return the prefix, or raise for one whose keys no store could keep."""
    return checked_text(prefix, "prefix", MAX_PREFIX_LENGTH)


def _floored(instant: datetime, argument: str) -> datetime:
    millis = to_millis(instant, argument)
    try:
        return from_millis(millis)
    except OverflowError as error:
        raise InvalidArgument(
            argument, f"lies outside the years 1 to 9999 UTC: {instant!r}"
        ) from error
