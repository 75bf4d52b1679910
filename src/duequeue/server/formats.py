"""JSON and msgpack, the two formats of bodies."""

from base64 import b64encode
from functools import cache, lru_cache
from typing import Any, Protocol

import msgspec
from msgspec import UNSET, Raw, UnsetType


class Format(Protocol):
    """How bodies are read and written."""

    content_type: bytes

    def decode(self, data: bytes, kind: Any) -> Any:
        """Read a value of a type."""

    def encode(self, value: object) -> bytes:
        """Write a value."""

    def raw_json(self, data: bytes) -> Raw:
        """Return JSON as a part of an answer, or raise if it is not JSON."""

    def raw_value(self, value: object) -> Raw:
        """Return a value as a part of an answer."""

    def binary(self, data: bytes) -> tuple[Raw | UnsetType, str | UnsetType]:
        """Return bytes as `payload` or as `payload_b64`."""


class Json:
    """JSON, in which bytes are base64."""

    content_type = b"application/json"

    def decode(self, data: bytes, kind: Any) -> Any:
        """Read a value of a type."""
        return _json_decoder(kind).decode(data)

    def encode(self, value: object) -> bytes:
        """Write a value."""
        return _encode_json(value)

    def raw_json(self, data: bytes) -> Raw:
        """Return the same bytes, once it is clear that they are JSON."""
        _check_json(data)
        return Raw(data)

    def raw_value(self, value: object) -> Raw:
        """Write the value."""
        return Raw(_encode_json(value))

    def binary(self, data: bytes) -> tuple[Raw | UnsetType, str | UnsetType]:
        """Return base64."""
        return UNSET, b64encode(data).decode()


class Msgpack:
    """msgpack, which has bytes."""

    content_type = b"application/msgpack"

    def decode(self, data: bytes, kind: Any) -> Any:
        """Read a value of a type."""
        return _msgpack_decoder(kind).decode(data)

    def encode(self, value: object) -> bytes:
        """Write a value."""
        return _encode_msgpack(value)

    def raw_json(self, data: bytes) -> Raw:
        """Write the value that the JSON stands for; numbers beyond 64 bits are texts."""
        return self.raw_value(_check_json(data))

    def raw_value(self, value: object) -> Raw:
        """Write the value."""
        try:
            return Raw(_encode_msgpack(value))
        except OverflowError:
            return Raw(_encode_msgpack(_without_long_numbers(value)))

    def binary(self, data: bytes) -> tuple[Raw | UnsetType, str | UnsetType]:
        """Return the bytes."""
        return Raw(_encode_msgpack(data)), UNSET


JSON: Format = Json()
MSGPACK: Format = Msgpack()

_MSGPACK_NAMES = (b"application/msgpack", b"application/x-msgpack", b"application/vnd.msgpack")
_encode_json = msgspec.json.Encoder().encode
_encode_msgpack = msgspec.msgpack.Encoder().encode
_check_json = msgspec.json.Decoder().decode


@lru_cache(maxsize=100)  # clients send the same few headers again and again
def format_of(content_type: bytes | None) -> Format:
    """Return the format that a header names; anything other than msgpack means JSON."""
    if content_type is None:
        return JSON
    return MSGPACK if content_type.partition(b";")[0].strip().lower() in _MSGPACK_NAMES else JSON


def accepted_format(accept: bytes | None, otherwise: Format) -> Format:
    """Return the format of the answer, which is that of the request unless a header names one."""
    if accept is None or accept == b"*/*":
        return otherwise
    names = [part.partition(b";")[0].strip().lower() for part in accept.split(b",")]
    if any(name in _MSGPACK_NAMES for name in names):
        return MSGPACK
    return JSON if b"application/json" in names else otherwise


@cache
def _json_decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


@cache
def _msgpack_decoder(kind: Any) -> msgspec.msgpack.Decoder[Any]:
    return msgspec.msgpack.Decoder(kind)


def _without_long_numbers(value: object) -> object:
    match value:
        case int() if not -(2**63) <= value < 2**64:
            return str(value)
        case list():
            return [_without_long_numbers(each) for each in value]
        case dict():
            return {key: _without_long_numbers(each) for key, each in value.items()}
        case _:
            return value
