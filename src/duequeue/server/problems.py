"""Errors as RFC 9457 problem details. They name the argument that is wrong, never its payload."""

import re
from collections.abc import Iterable, Iterator, Mapping
from http import HTTPStatus
from typing import Any, get_args, get_type_hints

import msgspec

from duequeue.errors import (
    DueQueueError,
    InvalidArgument,
    InvalidType,
    MissingExtra,
    PayloadTooLarge,
    QueueClosed,
    SchemaError,
    StoreBusy,
    StoreUnavailable,
)
from duequeue.suggestions import suggestion

CONTENT_TYPE = b"application/problem+json"
LONGEST_DETAIL = 600
# How a library's error names its argument, and how the API does.
_ARGUMENTS = {
    "after": "cursor",
    "codec": "type",
    "due": "due_at",
    "name": "queue",
    "prefix": "key_prefix",
}
_PLACE = re.compile(r" - at `\$\.?([^`]*)`$")
# The end of a text such as "lease must be at least one millisecond, not datetime.timedelta(0)".
_VALUE_OF_PYTHON = re.compile(r", (?:not|but it is) datetime\.(?:datetime|timedelta)\(.*\)$")
_UNKNOWN_FIELD = re.compile(r"unknown field `([^`]*)`")
_BAD_CHARACTER = re.compile(r"Expected `str` matching regex .*$")
_MISSING_FIELD = re.compile(r"missing required field `([^`]*)`")
# What reading a body raises.
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class ProblemDetails(msgspec.Struct, omit_defaults=True):
    """The body of an error."""

    type: str
    title: str
    status: int
    detail: str
    request_id: str
    argument: str | None = None
    offered: int | None = None
    reason: str | None = None


class Problem(Exception):
    """An error to answer a request with."""

    def __init__(
        self,
        status: int,
        kind: str,
        detail: str,
        *,
        argument: str | None = None,
        headers: Mapping[bytes, bytes] | None = None,
        offered: int | None = None,
        reason: str | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.kind = kind
        self.detail = detail
        self.argument = argument
        self.headers = dict(headers or {})
        self.offered = offered
        self.reason = reason

    def encoded(self, request_id: str) -> bytes:
        """Return the body."""
        details = ProblemDetails(
            type=f"urn:duequeue:{self.kind}",
            title=HTTPStatus(self.status).phrase,
            status=self.status,
            detail=_shortened(self.detail),
            request_id=request_id,
            argument=None if self.argument is None else _shortened(self.argument),
            offered=self.offered,
            reason=self.reason,
        )
        return msgspec.json.encode(details)


def _shortened(text: str) -> str:
    """Leave out the middle of a text that quotes something long."""
    half = LONGEST_DETAIL // 2
    return text if len(text) <= LONGEST_DETAIL else f"{text[:half]} … {text[-half:]}"


def invalid(argument: str, detail: str) -> Problem:
    """Return the problem of an argument that is not valid."""
    return Problem(422, "invalid-argument", detail, argument=argument)


def not_found(detail: str) -> Problem:
    """Return the problem of a request for something that does not exist."""
    return Problem(404, "not-found", detail)


def too_large(detail: str, argument: str | None = None) -> Problem:
    """Return the problem of a request that is too large."""
    return Problem(413, "too-large", detail, argument=argument)


def stopping() -> Problem:
    """Return the problem of a request that did not end before the server had to stop."""
    later = {b"retry-after": b"1", b"connection": b"close"}
    return Problem(503, "stopping", "the server is stopping; try again", headers=later)


def unavailable(seconds: int) -> Problem:
    """Return the problem of a request that the store could not serve, and when to try again."""
    later = {b"retry-after": b"%d" % seconds}
    return Problem(503, "unavailable", "the store is unavailable", headers=later)


def busy() -> Problem:
    """Return the problem of a request for which no connection to the store was free in time."""
    return Problem(
        503,
        "busy",
        "other requests use all connections of the server to its store; try again",
        headers={b"retry-after": b"1"},
    )


def malformed(detail: str) -> Problem:
    """Return the problem of a request that cannot be read at all."""
    return Problem(400, "malformed", detail)


def undecodable(error: Exception, inside: str = "", kind: Any = None) -> Problem:
    """Return the problem of a body that is not JSON or msgpack, or not of this kind."""
    if isinstance(error, UnicodeDecodeError):
        return malformed(f"{inside or 'the body'} is not valid UTF-8")
    if isinstance(error, RecursionError):
        return malformed(f"{inside or 'the body'} is nested too deeply")
    text = str(error)
    if not isinstance(error, msgspec.ValidationError):
        return malformed(f"{inside or 'the body'} cannot be read: {text}")
    place = _PLACE.search(text)
    argument = place[1] if place else ""
    text = _BAD_CHARACTER.sub("it holds a character that is not allowed here", _PLACE.sub("", text))
    for pattern in (_UNKNOWN_FIELD, _MISSING_FIELD):
        if field := pattern.search(text):
            argument = f"{argument}.{field[1]}".lstrip(".")
            if pattern is _UNKNOWN_FIELD and (hint := suggestion(field[1], set(_fields_in(kind)))):
                text += f"; {hint}"
    whole = ".".join(part for part in (inside, argument) if part) or "body"
    return invalid(whole, f"{whole}: {text}")


def _fields_in(kind: Any) -> Iterator[str]:
    """Return the names of all fields of a type, and of the types inside it."""
    if hasattr(kind, "__struct_fields__"):
        yield from kind.__struct_fields__
        parts: Iterable[Any] = get_type_hints(kind).values()
    else:
        parts = get_args(kind)
    for part in parts:
        yield from _fields_in(part)


def problem_of(error: Exception) -> Problem:
    """Return the problem that an error stands for; what nobody has foreseen is a failure."""
    match error:
        case Problem():
            return error
        case PayloadTooLarge():
            return too_large(str(error), error.argument)
        case InvalidArgument() | InvalidType():
            argument = _ARGUMENTS.get(error.argument, error.argument)
            return invalid(argument, _VALUE_OF_PYTHON.sub("", str(error)))
        case _:
            return _failure(error)


def _failure(error: Exception) -> Problem:
    """Return the problem of a request that was right but could not be served."""
    match error:
        case StoreBusy():
            return busy()
        case StoreUnavailable() | QueueClosed():
            return unavailable(1)
        case SchemaError() | MissingExtra():
            detail = "the server is not configured correctly; its log has the request id"
            return Problem(500, "misconfigured", detail)
        case DueQueueError():
            return Problem(500, "store-error", "the store refused the operation")
        case _:
            return Problem(500, "internal", "the server failed; its log has the request id")
