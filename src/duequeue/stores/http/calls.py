"""A call as the body of a request."""

from datetime import UTC, datetime
from math import isfinite

from msgspec import Raw

from duequeue.instants import to_millis
from duequeue.port.remote import Call, encode
from duequeue.stores.http.store import RemoteCall

CALL_PATH = "/v1/port:call"
WAIT_PATH = "/v1/port:wait"


def body_of(call: RemoteCall, seconds: float, *, consumes: bool) -> bytes:
    """Return the body of a call that may take this many seconds."""
    return encode(
        Call(
            call.name,
            Raw(encode(call.arguments)),
            *call.opened,
            seconds=seconds if isfinite(seconds) else None,
            consumes=consumes,
            sent_at=to_millis(datetime.now(UTC)),
        )
    )
