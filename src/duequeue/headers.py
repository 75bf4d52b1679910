"""Small string maps that travel beside a payload, such as a trace context."""

from collections.abc import Mapping

import msgspec

from duequeue.errors import InvalidArgument, InvalidType, StoreError

MAX_HEADERS_BYTES = 8 * 1024

_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder(dict[str, str]).decode


def encode_headers(headers: Mapping[str, str] | None) -> str | None:
    """Return headers as a store keeps them, which is None for no headers."""
    if headers is None:
        return None
    given: object = headers
    if not isinstance(given, Mapping) or not all(
        isinstance(part, str) for pair in given.items() for part in pair
    ):
        raise InvalidType("headers", f"must map strings to strings, not {headers!r}")
    if not headers:
        return None
    try:
        text = _encode(dict(headers)).decode()
    except UnicodeEncodeError as error:
        raise InvalidArgument("headers", f"are not valid Unicode text: {headers!r}") from error
    if (size := len(text.encode())) > MAX_HEADERS_BYTES:
        raise InvalidArgument("headers", f"take {size} bytes, but the limit is {MAX_HEADERS_BYTES}")
    return text


def decode_headers(text: str | None, key: str | None = None) -> dict[str, str]:
    """Return headers as `encode_headers` was given them; raise if the row was damaged since.

    The error names the key, if it is given.
    """
    try:
        return {} if text is None else _decode(text)
    except msgspec.DecodeError as error:
        owner = "a message" if key is None else f"the message {key!r}"
        raise StoreError(
            f"{owner} has something other than strings by name in its column headers: {error}"
        ) from error


def shown_headers(text: str | None, key: str) -> dict[str, str]:
    """Return headers for people to look at, and none if the row was damaged."""
    try:
        return decode_headers(text, key)
    except StoreError:
        return {}
