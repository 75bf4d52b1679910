"""Messages as lines of JSON, which `export` writes and `import` reads."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from duequeue.cli.payloads import payload_bytes
from duequeue.errors import InvalidArgument, InvalidType
from duequeue.headers import encode_headers
from duequeue.instants import parse_instant
from duequeue.message import checked_key, checked_payload, checked_type_name

NAMES = {"key", "type", "due_at", "payload", "payload_b64", "headers", "expires_at"}


class BadLine(Exception):
    """A line that is not a message."""

    def __init__(self, number: int, reason: object) -> None:
        super().__init__(f"line {number:,}: {reason}")


class NumberedLine(NamedTuple):
    """A line that was read and checked."""

    number: int
    key: str
    payload_type: str
    payload: bytes
    due_at: datetime | None
    expires_at: datetime | None
    headers: dict[str, str]


def lines_of(source: Iterable[bytes], skip: int) -> Iterator[NumberedLine]:
    """Return the messages in lines of JSON; empty lines count as lines, but are left out."""
    for number, text in enumerate(source, 1):
        if number > skip and text.strip():
            try:
                yield _line(number, text)
            except (InvalidArgument, InvalidType, msgspec.DecodeError, UnicodeDecodeError) as error:
                raise BadLine(number, error) from error


def _line(number: int, text: bytes) -> NumberedLine:
    found = msgspec.json.decode(text)
    if not isinstance(found, dict):
        raise InvalidArgument("line", text="this is not a JSON object")
    if unknown := found.keys() - NAMES:
        known = ", ".join(sorted(NAMES))
        raise InvalidArgument(
            "line", text=f"{', '.join(sorted(unknown))} is unknown; the known fields are {known}"
        )
    if "key" not in found:
        raise InvalidArgument("key", "is missing")
    key = checked_key(found["key"])
    payload_type = checked_type_name(found.get("type", "json"))
    headers = found.get("headers") or {}
    encode_headers(headers)
    return NumberedLine(
        number,
        key,
        payload_type,
        checked_payload(payload_bytes(found, payload_type), key),
        _instant(found, "due_at"),
        _instant(found, "expires_at"),
        headers,
    )


def _instant(found: dict[str, Any], name: str) -> datetime | None:
    text = found.get(name)
    if text is None:
        return None
    if not isinstance(text, str):
        raise InvalidType(name, "must be a string such as 2026-11-18T07:00:00Z")
    try:
        return parse_instant(text)
    except InvalidArgument as error:
        raise InvalidArgument(name, text=f"{name}: {error}") from None
