"""Payloads as the store keeps them, for programs that pass them on without looking inside."""

import msgspec

from duequeue.codec import JsonCodec, TextCodec

_decode_json = msgspec.json.Decoder().decode
_decode_text = TextCodec().decode


class StoredBytes:
    """A codec that leaves payloads as the store keeps them."""

    def __init__(self, type_name: str) -> None:
        self.type_name = type_name

    def encode(self, value: bytes, /) -> bytes:
        """Return the bytes."""
        return value

    def decode(self, data: bytes, /) -> bytes:
        """Return the bytes."""
        return data


class CheckedBytes(StoredBytes):
    """The same, but bytes that the usual codec could not decode are an error.

    So these polls bury what polls in Python would bury.
    """

    def decode(self, data: bytes, /) -> bytes:
        """Return the bytes, or raise."""
        if self.type_name == JsonCodec.type_name:
            _decode_json(data)
        elif self.type_name == TextCodec.type_name:
            _decode_text(data)
        return data
