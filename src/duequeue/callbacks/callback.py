"""One callback: the payload as it is stored, and headers that describe the message."""

import re
from collections.abc import Callable
from functools import lru_cache
from string import ascii_letters, digits
from time import time
from urllib.parse import quote

from duequeue.callbacks.answer import Meaning, TryLater, meaning_of
from duequeue.callbacks.endpoint import ENDPOINT_HEADER
from duequeue.callbacks.lease_keeper import Held
from duequeue.callbacks.posting import CallFailed, Poster
from duequeue.callbacks.records import StoredEndpoint
from duequeue.callbacks.signing import signature
from duequeue.flows.lease_tokens import token_of
from duequeue.instants import MILLISECOND, instant_text, nearest_instant

# The headers of a message that are passed on to the receiver unchanged.
PASSED_ON = ("traceparent", "tracestate")
_CONTENT_TYPES = {"text": "text/plain; charset=utf-8", "bytes": "application/octet-stream"}
# A header holds these characters as they are; everything else is percent-encoded.
_SAFE = ascii_letters + digits + "!\"#$&'()*+,-./:;<=>?@[\\]^_`{|}~"
_PLAIN = re.compile(f"[{re.escape(_SAFE)}]*")
LONGEST_PASSED_ON = 512


async def called(
    poster: Poster, entry: StoredEndpoint, message: Held, now: Callable[[], int]
) -> Meaning:
    """Post a message to its endpoint, and return what the answer means.

    `now` is the clock of the queue, which may have been moved. Receivers go by the real time.
    """
    endpoint = entry.endpoint
    headers = headers_of(message, entry, now())
    timeout = endpoint.timeout * MILLISECOND
    try:
        answer = await poster.post(endpoint.url, message.payload, headers, timeout)
    except CallFailed as error:
        blamed = error.blames_endpoint
        return TryLater(error.reason, blames_endpoint=blamed, was_called=blamed)
    return meaning_of(answer, int(time() * 1000))


def headers_of(message: Held, entry: StoredEndpoint, now: int) -> dict[str, str]:
    """Return the headers of an attempt to deliver a message."""
    endpoint = entry.endpoint
    kind = f"{endpoint.queue}|{endpoint.type}"
    identity, timestamp = message.webhook_id(kind), int(time())
    headers = {
        "content-type": _CONTENT_TYPES.get(endpoint.type, "application/json"),
        "webhook-id": identity,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": signature(
            entry.keys.signers(now), identity, timestamp, message.payload
        ),
        "duequeue-queue": _quoted(endpoint.queue),
        "duequeue-key": _quoted(message.key),
        "duequeue-attempt": str(message.attempt),
        "duequeue-due-at": _instant(message.due_millis),
        "duequeue-scheduled-at": _instant(message.scheduled_at),
        "duequeue-token": token_of(message, kind),
        ENDPOINT_HEADER: endpoint.name,
    }
    given = message.headers
    for name in PASSED_ON:
        value = given.get(name, "")
        if value and len(value) <= LONGEST_PASSED_ON and value.isascii() and value.isprintable():
            headers[name] = value
    return headers


def _quoted(text: str) -> str:
    return text if text.isascii() and _PLAIN.fullmatch(text) else quote(text, safe=_SAFE)


@lru_cache(maxsize=1024)  # the messages of a batch share most of their instants
def _instant(millis: int) -> str:
    return instant_text(nearest_instant(millis))
