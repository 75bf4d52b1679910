"""How payloads become bytes and come back."""

from typing import Any, Protocol, TypeVar, cast, get_origin

import msgspec

from duequeue.errors import InvalidArgument, InvalidType
from duequeue.message import checked_type_name
from duequeue.payloads.json_bytes import NO_UTF_8, encode_json
from duequeue.payloads.typed_codec import TypedCodec

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
        self.encode = encode_json
        self.decode = msgspec.json.Decoder().decode


class TextCodec:
    """Strings, as UTF-8."""

    type_name = "text"

    def encode(self, value: str, /) -> bytes:
        """Encode as UTF-8."""
        if not isinstance(value, str):
            raise InvalidType("payload", f"must be a str, not {type(value).__name__}")
        try:
            return value.encode()
        except UnicodeEncodeError:
            raise InvalidArgument("payload", NO_UTF_8) from None

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
            raise InvalidType("payload", f"must be bytes, not {type(value).__name__}")
        return bytes(value)

    def decode(self, data: bytes, /) -> bytes:
        """Return the bytes."""
        return data


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
    if isinstance(choice, type) or get_origin(choice) is not None:
        return TypedCodec(choice)
    if not _is_codec(choice):
        raise InvalidType(
            "codec", f"must have type_name, encode and decode, which {choice!r} lacks"
        )
    return cast("Codec[Any]", choice)


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
