"""Messages as they are offered, stored and read, and the limits of their parts."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Annotated, Any, Generic, TypeAlias

from msgspec import Meta
from typing_extensions import TypeVar

from duequeue.errors import InvalidArgument, InvalidType, PayloadTooLarge

T = TypeVar("T", default=Any)

MAX_KEY_LENGTH = 200
MAX_NAME_LENGTH = 100
MAX_TYPE_NAME_LENGTH = 200
MAX_PAYLOAD_BYTES = 8 * 1024 * 1024

# The name of a queue in JSON.
QueueNameText: TypeAlias = Annotated[
    str, Meta(min_length=1, max_length=MAX_NAME_LENGTH, pattern=r"^[^\x00|]*$")
]


class OfferOutcome(Enum):
    """What an offer did."""

    CREATED = "created"
    UPDATED = "updated"
    IGNORED = "ignored"


class State(Enum):
    """The state of a stored message."""

    FUTURE = "future"
    DUE = "due"
    LEASED = "leased"
    BURIED = "buried"


@dataclass(frozen=True, slots=True)
class Message(Generic[T]):
    """What a producer offers; `due` is an instant, a time from now, or None for now.

    `expires` is an instant or a time from now, from which it is dropped instead of delivered.
    """

    key: str
    payload: T
    due: datetime | timedelta | None = None
    replace: bool = True
    headers: Mapping[str, str] | None = None
    expires: datetime | timedelta | None = None


@dataclass(frozen=True, slots=True)
class Snapshot(Generic[T]):
    """A stored message as `read` or `list` found it.

    `due_at` is what the producer asked for. `deliver_at` is when polls may deliver it, which
    differs after a release with a delay. It is None if the message is buried.
    """

    key: str
    payload: T
    due_at: datetime
    state: State
    attempts: int
    headers: dict[str, str]
    leased_until: datetime | None = None
    reason: str | None = None
    deliver_at: datetime | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some messages of a queue in due order, and the cursor of the next page, if there is one."""

    messages: list[Snapshot[T]]
    next: str | None


@dataclass(frozen=True, slots=True)
class BuriedMessage(Generic[T]):
    """A message that was taken out of the queue; `payload` is None if it cannot be decoded.

    `id` distinguishes the burials of one key. It is a text whose form may change.
    """

    key: str
    payload: T | None
    raw: bytes
    due_at: datetime
    attempts: int
    reason: str
    buried_at: datetime
    headers: dict[str, str]
    id: str


@dataclass(frozen=True, slots=True)
class BurialNotice(Generic[T]):
    """What `on_buried` is given: a message that the consumer has just buried.

    `payload` is None if it cannot be decoded.
    """

    queue_name: str
    key: str
    payload: T | None
    due_at: datetime
    attempts: int
    reason: str
    headers: dict[str, str]


@dataclass(frozen=True, slots=True)
class QueueStats:
    """How many messages are in which state, at one instant."""

    total: int
    due: int
    leased: int
    future: int
    buried: int
    oldest_due_at: datetime | None
    next_due_at: datetime | None


@dataclass(frozen=True, slots=True)
class Bucket:
    """The messages that fall due in a span of time, which begins at `begins_at`.

    Messages that are already due count in the first bucket of a forecast, and are its `overdue`.
    """

    begins_at: datetime
    messages: int
    overdue: int


def checked_key(key: str) -> str:
    """Return the key, or raise for one that no store could keep exactly."""
    if not isinstance(key, str):
        raise InvalidType("key", f"must be a str, not {type(key).__name__}")
    if not 1 <= len(key) <= MAX_KEY_LENGTH:
        raise InvalidArgument("key", f"must have 1 to {MAX_KEY_LENGTH} characters, not {len(key)}")
    if not key.isascii() or "\0" in key:
        _check_characters(key, "key")
    return str.__str__(key)


def checked_prefix(prefix: str) -> str:
    """Return a prefix of keys, or raise for one that no key can have."""
    return checked_text(prefix, "prefix", MAX_KEY_LENGTH, shortest=0)


def checked_name(name: str, argument: str = "name") -> str:
    """Return the queue name, or raise for one that could be mistaken for another queue."""
    name = checked_text(name, argument, MAX_NAME_LENGTH)
    if "|" in name:
        raise InvalidArgument(
            argument, f"must not contain '|', which ends it in the tables: {name!r}"
        )
    return name


def checked_type_name(type_name: str, argument: str = "codec.type_name") -> str:
    """Return the name of a payload type, or raise for one that no store could keep exactly."""
    return checked_text(type_name, argument, MAX_TYPE_NAME_LENGTH)


def checked_text(text: str, argument: str, longest: int, *, shortest: int = 1) -> str:
    """Return a name or a part of a key, or raise for one that no store could keep exactly."""
    if not isinstance(text, str):
        raise InvalidType(argument, f"must be a str, not {type(text).__name__}")
    if not shortest <= len(text) <= longest:
        allowed = f"{shortest} to {longest} characters"
        raise InvalidArgument(argument, f"must have {allowed}, not {len(text)}")
    if not text.isascii() or "\0" in text:
        _check_characters(text, argument)
    return str.__str__(text)  # an f-string would show another text for an enum that is a str


def checked_payload(data: bytes, key: str, what: str = "payload") -> bytes:
    """Return the encoded payload, or raise for one above the limit."""
    if not isinstance(data, bytes):
        raise InvalidType(
            "codec", text=f"codec.encode must return bytes, not {type(data).__name__}"
        )
    if len(data) > MAX_PAYLOAD_BYTES:
        raise PayloadTooLarge(
            f"{what} of {key!r} has {len(data)} bytes when encoded, but the limit is "
            f"{MAX_PAYLOAD_BYTES}; store it elsewhere and send its address"
        )
    return data


def _check_characters(text: str, argument: str) -> None:
    if "\0" in text:
        raise InvalidArgument(argument, f"must not contain NUL: {text!r}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgument(argument, f"is not valid Unicode text: {text!r}") from error
