"""Checks of the arguments of the port, which a client may send without the library's own checks."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from duequeue.errors import StoreError
from duequeue.flows.inspecting import MOST_BUCKETS
from duequeue.flows.lease_tokens import is_held
from duequeue.headers import MAX_HEADERS_BYTES, decode_headers
from duequeue.instants import EARLIEST, LATEST
from duequeue.message import MAX_PAYLOAD_BYTES, checked_key, checked_prefix
from duequeue.port.listing import FIRST, LAST, Buckets, BurialSelection, Selection
from duequeue.port.remote import Operation
from duequeue.port.store import Lease
from duequeue.schedules.tick import ConfigHash
from duequeue.server.problems import invalid, too_large

# How many messages one call may ask for; the client asks again for more.
MOST_MESSAGES = 10_000
# The ends of leases may lie beyond the calendar, but every store must be able to compute with them.
FARTHEST = 2**53
_BEFORE = ("before", "history_before", "buried_before", "since", "created_until")
# What a number may be, by its name; others fit into 64 bits.
_RANGES = {
    **dict.fromkeys(("now", "due_at", "at", "day"), (EARLIEST, LATEST)),
    **dict.fromkeys(("until", "expires_at", "keep", *_BEFORE), (-FARTHEST, FARTHEST)),
    # SQLite would take a negative limit for none, and Redis has no negative ids.
    **dict.fromkeys(("limit", "most", "first_id", "last_id"), (0, LAST)),
    "attempts": (0, 2**31 - 1),
    "token": (1, LAST),  # 0 stands for none
    "due_to": (FIRST + 1, LAST + 1),  # it is exclusive
}


def checked_arguments(operation: Operation, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments with a bounded limit, or raise if one of them is not valid."""
    checked = dict(zip(operation.signature.parameters, arguments, strict=True))
    for name, value in checked.items():
        _check(name, value)
    if "limit" in checked:
        checked["limit"] = min(checked["limit"], MOST_MESSAGES)
    return tuple(map(_bounded, checked.values()))


def _bounded(value: Any) -> Any:
    if isinstance(value, Selection | BurialSelection):
        value = value._replace(limit=min(value.limit, MOST_MESSAGES))
    # MariaDB adds to where a selection begins.
    if isinstance(value, Selection):
        value = value._replace(due_from=min(value.due_from, FARTHEST))
    if isinstance(value, BurialSelection):
        begin = value.after._replace(buried_at=min(value.after.buried_at, FARTHEST))
        value = value._replace(after=begin)
    return value


def _check(name: str, value: Any) -> None:
    if isinstance(value, Lease) and not is_held(value):
        raise invalid("lease", "lease must be one that a claim has returned")
    if isinstance(value, Buckets):
        _check_buckets(value)
    elif isinstance(value, str):
        _check_text(name, value)
    elif isinstance(value, int):
        _check_number(name, value)
    elif isinstance(value, bytes) and len(value) > MAX_PAYLOAD_BYTES:
        raise too_large(f"payload may have at most {MAX_PAYLOAD_BYTES} bytes", "payload")
    for part, each in _parts(name, value):
        _check(part, each)


def _parts(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Return the values that a value consists of, each with its own name if it has one."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        yield from zip(value._fields, value, strict=True)
    elif is_dataclass(value):
        yield from ((each.name, getattr(value, each.name)) for each in fields(value))
    elif isinstance(value, list | tuple):
        yield from ((name, each) for each in value)


def _check_buckets(buckets: Buckets) -> None:
    begins_at, length, until = buckets
    if length < 1 or not begins_at < until <= begins_at + length * MOST_BUCKETS:
        raise invalid("buckets", f"buckets must be 1 to {MOST_BUCKETS:,} of at least a millisecond")
    _check_number("at", begins_at)
    _check_number("until", until)


def _check_text(name: str, text: str) -> None:
    if name == "key":
        checked_key(text)
    elif name == "prefix":
        checked_prefix(text)
    elif name == "config_hash":
        ConfigHash(text)
    elif name == "headers":
        if len(text.encode()) > MAX_HEADERS_BYTES:
            raise too_large(f"headers may have at most {MAX_HEADERS_BYTES} bytes", "headers")
        _check_headers(text)


def _check_headers(text: str) -> None:
    try:
        decode_headers(text)
    except StoreError:
        raise invalid("headers", "headers must map names to strings") from None


def _check_number(name: str, number: int) -> None:
    least, most = _RANGES.get(name, (FIRST, LAST))
    if least <= number <= most:
        return
    if least == EARLIEST:
        raise invalid(name, f"{name} must lie in the years 1 to 9999 of UTC")
    raise invalid(name, f"{name} must be a number from {least} to {most}")
