"""Why a call got no answer, and errors and texts from elsewhere in words that fit a log line."""

import os
import ssl
import traceback
from pathlib import Path

import aiohttp

from duequeue.callbacks.addresses import NoThread
from duequeue.callbacks.guard import Refused
from duequeue.errors import DueQueueError, InvalidArgument, InvalidType
from duequeue.process.contact import one_line

LONGEST = 300


def plain(text: str, longest: int = LONGEST) -> str:
    """Return a text in one line, without control characters, and not too long."""
    line = " ".join("".join(_shown(character) for character in text[: 4 * longest]).split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def _shown(character: str) -> str:
    if character.isspace():
        return " "
    return character if character.isprintable() else "\N{REPLACEMENT CHARACTER}"


def words_about(error: BaseException) -> str:
    """Return the text of our own error, or the type of another one and where it was raised.

    The text of an unexpected error is left out, because it may hold a payload or a secret.
    """
    refused = isinstance(error, InvalidArgument | InvalidType)  # no user is there to correct it
    if isinstance(error, DueQueueError) and not refused:
        return one_line(error)
    *_, frame = traceback.extract_tb(error.__traceback__)
    return f"unexpected {type(error).__name__} at {Path(frame.filename).name}:{frame.lineno}"


def reason_for(error: Exception) -> str:
    """Return in one line why a call failed."""
    if isinstance(error, Refused):
        return plain(error.reason)
    if isinstance(error, aiohttp.ClientConnectorError):
        return plain(_connecting(error))
    return plain(_calling(error))


def _connecting(error: aiohttp.ClientConnectorError) -> str:
    cause = error.os_error
    match error:
        case _ if isinstance(cause, Refused | NoThread):
            return cause.reason
        case aiohttp.ClientConnectorCertificateError():
            return f"the certificate of {error.host} is not valid: {_certificate_fault(error)}"
        case aiohttp.ClientConnectorSSLError():
            return f"TLS with {error.host} failed: {cause}"
        case aiohttp.ClientConnectorDNSError():
            return f"the name {error.host} was not found: {_said(cause)}"
        case aiohttp.ClientProxyConnectionError():
            return f"cannot connect to the proxy: {_said(cause)}"
        case _:
            return f"cannot connect to {error.host}: {_said(cause)}"


def _calling(error: Exception) -> str:
    match error:
        case aiohttp.ClientHttpProxyError():
            return f"the proxy answered {error.status} {error.message}"
        case aiohttp.ServerDisconnectedError():
            return "the connection was closed before an answer"
        case aiohttp.ClientPayloadError():
            return "the answer was cut off"
        case aiohttp.ClientResponseError():
            return f"the answer is not valid HTTP: {error.message}"
        case OSError():
            return f"the connection broke: {_said(error)}"
        case _:
            return f"the call cannot be made: {error}"


def _certificate_fault(error: aiohttp.ClientConnectorCertificateError) -> str:
    fault = error.certificate_error
    return fault.verify_message if isinstance(fault, ssl.SSLCertVerificationError) else str(fault)


def _said(error: OSError) -> str:
    if error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    return error.strerror or str(error) or type(error).__name__
