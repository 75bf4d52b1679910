"""Why a call got no answer, in words that fit the reason of a burial."""

import os
import ssl

import aiohttp

from duequeue.callbacks.guard import Refused
from duequeue.callbacks.lookups import NoThread
from duequeue.callbacks.plain_text import plain


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
