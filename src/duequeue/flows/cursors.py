"""The texts by which users name a position in a listing, or a burial."""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from hashlib import sha256
from typing import Any

from duequeue.errors import InvalidArgument, InvalidType
from duequeue.flows.context import Context
from duequeue.instants import EARLIEST, LATEST
from duequeue.port.listing import LAST, BurialId, Position

_CURSOR = re.compile(rb"(-?\d{1,19})\.(\d{1,19})\.[0-9a-f]{16}")
_BURIAL = re.compile(r"(-?\d{1,19})\.(\d{1,19})", re.ASCII)


def cursor_at(context: Context[Any], position: Position) -> str:
    """Return the cursor of a position, with a checksum of the position and the queue."""
    numbers = f"{position.due_at}.{position.id}"
    queue = f"{context.name}|{context.codec.type_name}"
    checksum = sha256(f"{queue}|{numbers}".encode()).hexdigest()[:16]
    return urlsafe_b64encode(f"{numbers}.{checksum}".encode()).decode().rstrip("=")


def position_of(context: Context[Any], after: str) -> Position:
    """Return the position of a cursor, or raise if it was changed or comes from another queue."""
    if not isinstance(after, str):
        raise InvalidType(
            "after", f"must be the `next` of a page or None, not {type(after).__name__}"
        )
    parts = _CURSOR.fullmatch(_decoded(after))
    position = Position(int(parts[1]), int(parts[2])) if parts else None
    if position is None or not _exists(*position) or cursor_at(context, position) != after:
        raise InvalidArgument(
            "after",
            f"must be the `next` of a page of the queue {context.name!r}, unchanged, not {after!r}",
        )
    return position


def burial_text(burial: BurialId) -> str:
    """Return a burial's id as text."""
    return f"{burial.buried_at}.{burial.number}"


def burial_id(text: str, argument: str) -> BurialId:
    """Return the id that a text stands for, or raise for any other text."""
    if not isinstance(text, str):
        found = type(text).__name__
        raise InvalidType(argument, f"must be the id of a buried message, not {found}")
    parts = _BURIAL.fullmatch(text)
    burial = BurialId(int(parts[1]), int(parts[2])) if parts else None
    if burial is None or not _exists(*burial):
        raise InvalidArgument(argument, f"must be the id of a buried message, not {text!r}")
    return burial


def _exists(at: int, number: int) -> bool:
    """Return whether a row can have this instant and this number."""
    return EARLIEST <= at <= LATEST and number <= LAST


def _decoded(cursor: str) -> bytes:
    try:
        return urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4))
    except (UnicodeEncodeError, Error):
        return b""
