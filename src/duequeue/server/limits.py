"""The limits of the service, as `/v1/limits` shows them."""

from dataclasses import dataclass, fields

from duequeue.errors import InvalidArgument
from duequeue.headers import MAX_HEADERS_BYTES
from duequeue.message import MAX_KEY_LENGTH, MAX_NAME_LENGTH, MAX_PAYLOAD_BYTES


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request, one token and one connection may use; times are in seconds.

    A streamed upload of NDJSON may be longer than `body_bytes`, but none of its lines may. A head
    is all that comes before a body, and the trailers of a body have the same limits. A connection
    lingers whose answer has ended before its request.
    """

    body_bytes: int = 16 * 1024 * 1024
    batch_messages: int = 1000
    stream_messages: int = 1_000_000
    poll_messages: int = 1000
    poll_bytes: int = 16 * 1024 * 1024
    wait_seconds: float = 60.0
    reads: int = 2
    read_seconds: float = 10.0
    waiters: int = 10_000
    waiters_per_token: int = 2000
    url_bytes: int = 8 * 1024
    head_bytes: int = 32 * 1024
    head_fields: int = 200
    unfinished_heads_bytes: int = 8 * 1024 * 1024
    handshake_seconds: float = 5.0
    handshakes: int = 512
    handshakes_per_address: int = 128
    head_seconds: float = 10.0
    body_seconds: float = 30.0
    answer_seconds: float = 30.0
    linger_seconds: float = 5.0
    connections: int = 12_000
    connections_per_address: int = 10_000
    open_queues: int = 500
    key_characters: int = MAX_KEY_LENGTH
    queue_characters: int = MAX_NAME_LENGTH
    payload_bytes: int = MAX_PAYLOAD_BYTES
    header_bytes: int = MAX_HEADERS_BYTES

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int | float) or value <= 0:
                raise InvalidArgument(field.name, f"must be a number above 0, not {value!r}")
