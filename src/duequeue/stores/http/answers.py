"""What the answer of a server means, and what is done about a server that answers nobody."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPException
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
from duequeue.process.contact import end_connection, one_line
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

# In seconds.
PROBE_EVERY = 10.0
PROBE_SECONDS = 5.0
PROBE_PATH = "/healthz"
# What a proxy answers for a server that it gets no answer from.
NOT_FROM_SERVER = frozenset({502, 504})


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


def no_answer() -> TimeoutError:
    """Return the error of a call that was given up."""
    return TimeoutError(f"no answer, and none to another request within {PROBE_SECONDS:.3g} s")


@contextmanager
def given_up_in_silence(connection: socket.socket, answers: Callable[[], bool]) -> Iterator[None]:
    """End the call of a block if the server does not answer another request either."""
    watch = _Watch(connection, answers)
    thread = threading.Thread(target=watch.run, name="duequeue-probe", daemon=True)
    with suppress(RuntimeError):  # out of threads; the call has a limit of its own
        thread.start()
    try:
        yield
    except (OSError, HTTPException) as error:
        if watch.is_cut:
            raise no_answer() from error
        raise
    finally:
        watch.end()


class _Watch:
    def __init__(self, connection: socket.socket, answers: Callable[[], bool]) -> None:
        self._connection = connection
        self._answers = answers
        self._over = threading.Event()
        # Held while the call ends, so that the next call on the connection is never cut off.
        self._lock = threading.Lock()
        self.is_cut = False

    def run(self) -> None:
        while not self._over.wait(PROBE_EVERY):
            if not self._answers():
                self._cut()

    def end(self) -> None:
        with self._lock:
            self._over.set()

    def _cut(self) -> None:
        with self._lock:
            if not self._over.is_set():
                self.is_cut = True
                self._over.set()
                with suppress(OSError):  # it was lost just now
                    end_connection(self._connection)
