"""What the answer of a server means."""

import ssl
from collections.abc import Callable
from typing import TypeVar

import msgspec

from duequeue.errors import (
    DueQueueError,
    InvalidArgument,
    PayloadTooLarge,
    SchemaError,
    StoreBusy,
    StoreError,
    StoreUnavailable,
)
from duequeue.process.contact import one_line
from duequeue.stores.http.address import TOKEN_VARIABLE

T = TypeVar("T")

_ANOTHER_SERVER = "; is it a DueQueue server, and is the path of the URL right?"
_UNAVAILABLE = frozenset({408, 502, 503, 504})
# A read that took too long would do so again.
TOO_LONG = "urn:duequeue:read-too-long"
# The server lives, so there is no outage to log.
BUSY = "urn:duequeue:busy"
TOO_MANY = 429
_OK = 200


class _Problem(msgspec.Struct):
    type: str = ""
    detail: str = ""
    argument: str = ""


def without_answer(error: Exception, address: str) -> StoreError:
    """Return the error of a request without an answer; only an outage can end by itself."""
    cause = error.__cause__ or error
    if isinstance(cause, ssl.SSLCertVerificationError):
        return StoreError(
            f"the certificate of the server at {address} is not trusted: {cause.verify_message}; "
            "name the file of its authority as in https://host?ssl_ca=FILE"
        )
    words = one_line(error) or type(error).__name__
    return StoreUnavailable(f"the server at {address} cannot be reached: {words}")


def read_answer(status: int, body: bytes, decode: Callable[[bytes], T], address: str) -> T:
    """Return the result in an answer, or raise the error that the answer stands for."""
    if status != _OK:
        raise _refusal(status, body, address)
    try:
        return decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        words = f"the answer of the server at {address} cannot be read ({error})"
        raise StoreError(words + _ANOTHER_SERVER) from error


def _refusal(status: int, body: bytes, address: str) -> DueQueueError:
    try:
        problem = msgspec.json.decode(body, type=_Problem)
    except (msgspec.DecodeError, UnicodeDecodeError):
        problem = _Problem()
    words = f"the server at {address} answered {status}"
    if problem.detail:
        words += f": {problem.detail}"
    if status == TOO_MANY or problem.type == BUSY:
        return StoreBusy(words)
    if status in _UNAVAILABLE and problem.type != TOO_LONG:
        return StoreUnavailable(words)
    if problem.type == "urn:duequeue:misconfigured":
        return SchemaError(words)
    if problem.type == "urn:duequeue:too-large" and problem.argument == "payload":
        return PayloadTooLarge(words)
    if problem.type.startswith("urn:duequeue:") and problem.argument:
        return InvalidArgument(problem.argument, text=words)
    if not problem.type.startswith("urn:duequeue:"):
        words += _ANOTHER_SERVER
    elif status == 401:  # noqa: PLR2004 - a status
        words += f"; pass a valid token=, or set {TOKEN_VARIABLE}"
    return StoreError(words)
