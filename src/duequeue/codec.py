"""How payloads become bytes and come back."""

import dataclasses
from math import isfinite
from typing import Any, Generic, Protocol, TypeVar, cast

import msgspec

from duequeue.message import checked_type_name

T = TypeVar("T")
Value = TypeVar("Value")


class Codec(Protocol[Value]):
    """Turns payloads into bytes and back; any error from `decode` means undecodable."""

    @property
    def type_name(self) -> str:
        """Name the payload type; queues of different types never see each other's messages."""

    def encode(self, value: Value, /) -> bytes:
        """Turn a payload into bytes."""

    def decode(self, data: bytes, /) -> Value:
        """Turn bytes back into a payload."""


class JsonCodec:
    """Plain JSON values. Keys are sorted, so equal values are equal bytes."""

    type_name = "json"

    def __init__(self) -> None:
        self.encode = _encode_json
        self.decode = msgspec.json.Decoder().decode


class TextCodec:
    """Strings, as UTF-8."""

    type_name = "text"

    def encode(self, value: str, /) -> bytes:
        """Encode as UTF-8."""
        if not isinstance(value, str):
            raise TypeError(f"payload must be a str, not {type(value).__name__}")
        return value.encode()

    def decode(self, data: bytes, /) -> str:
        """Decode from UTF-8."""
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            # The error of Python quotes the whole payload, which would then be in logs.
            raise ValueError(f"byte {error.start} is not UTF-8: {error.reason}") from None


class BytesCodec:
    """Bytes, untouched."""

    type_name = "bytes"

    def encode(self, value: bytes, /) -> bytes:
        """Copy the bytes."""
        if not isinstance(value, bytes | bytearray | memoryview):
            raise TypeError(f"payload must be bytes, not {type(value).__name__}")
        return bytes(value)

    def decode(self, data: bytes, /) -> bytes:
        """Return the bytes."""
        return data


class TypedCodec(Generic[T]):
    """Values of a dataclass or `msgspec.Struct`, as JSON that is validated when it is decoded."""

    def __init__(self, payload_type: type[T]) -> None:
        if not _has_fields(payload_type):
            raise TypeError(
                f"codec: {payload_type!r} is neither str, bytes, a dataclass nor a msgspec.Struct; "
                "pass an object with type_name, encode and decode instead"
            )
        self.type_name = payload_type.__qualname__
        self._payload_type = payload_type
        self._decoder = msgspec.json.Decoder(payload_type)

    def encode(self, value: T, /) -> bytes:
        """Encode a value of the payload type as JSON."""
        if not isinstance(value, self._payload_type):
            raise TypeError(f"payload must be a {self.type_name}, not {type(value).__name__}")
        return _encode_json(value)

    def decode(self, data: bytes, /) -> T:
        """Decode JSON and check it against the payload type."""
        return self._decoder.decode(data)


_encoder = msgspec.json.Encoder(order="deterministic")


def _encode_json(value: object, /) -> bytes:
    try:
        data = _encoder.encode(value)
    except TypeError as error:
        reason = "the keys of a dict must be strings" if "str keys" in str(error) else error
        raise TypeError(f"payload cannot be written as JSON: {reason}") from error
    # JSON has no notation for these numbers, and the encoder silently writes null.
    if b"null" in data and not _all_finite(msgspec.to_builtins(value)):
        raise ValueError("payload holds nan or an infinity, which JSON cannot express")
    return data


def _all_finite(value: object) -> bool:
    match value:
        case float():
            return isfinite(value)
        case dict():
            return all(map(_all_finite, value.values()))
        case list() | tuple():
            return all(map(_all_finite, value))
        case _:
            return True


def codec_for(choice: Any) -> Codec[Any]:
    """Return the codec that a user chose: None means JSON, a type its codec, a codec itself."""
    codec = _codec_for(choice)
    checked_type_name(codec.type_name)
    return codec


def _codec_for(choice: Any) -> Codec[Any]:
    if choice is None:
        return JsonCodec()
    if choice is str:
        return TextCodec()
    if choice is bytes:
        return BytesCodec()
    if isinstance(choice, type):
        return TypedCodec(choice)
    if not _is_codec(choice):
        raise TypeError(f"codec must have type_name, encode and decode, which {choice!r} lacks")
    return cast("Codec[Any]", choice)


def _has_fields(candidate: type) -> bool:
    return dataclasses.is_dataclass(candidate) or issubclass(candidate, msgspec.Struct)


def _is_codec(candidate: object) -> bool:
    return (
        isinstance(getattr(candidate, "type_name", None), str)
        and callable(getattr(candidate, "encode", None))
        and callable(getattr(candidate, "decode", None))
    )


# The codecs that a command line or an option of Spark can name.
CODECS: dict[str, Codec[Any]] = {
    "json": JsonCodec(),
    "text": TextCodec(),
    "bytes": BytesCodec(),
}
