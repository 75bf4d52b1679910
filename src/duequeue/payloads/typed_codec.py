"""The codec of a payload type."""

from typing import Generic, TypeVar

import msgspec

from duequeue.errors import InvalidArgument, InvalidType
from duequeue.payloads.json_bytes import encode_json
from duequeue.payloads.payload_types import class_of, is_payload_type, name_of
from duequeue.payloads.pydantic_models import load_model

T = TypeVar("T")


class TypedCodec(Generic[T]):
    """Values of one type, as JSON that is checked field by field when it is offered and decoded.

    The type is a dataclass, a `msgspec.Struct`, a pydantic model, an attrs class, a `NamedTuple`, a
    `TypedDict`, or a container of them, such as `list[Order]` or `dict[str, Order]`.
    """

    def __init__(self, payload_type: type[T]) -> None:
        if not is_payload_type(payload_type):
            raise InvalidType(
                "codec",
                text=f"codec: {payload_type!r} is not a payload type. Use str, bytes, a dataclass, "
                "a msgspec.Struct, a pydantic model, an attrs class, a NamedTuple, a TypedDict, or "
                "list[…] or dict[str, …] of one; or an object with type_name, encode and decode",
            )
        self.type_name = name_of(payload_type)
        self._class = class_of(payload_type)
        self._decoder = msgspec.json.Decoder(payload_type, dec_hook=load_model)

    def encode(self, value: T, /) -> bytes:
        """Encode a value of the payload type as JSON, or raise if it could not be decoded again."""
        if not isinstance(value, self._class):
            raise InvalidType("payload", f"must be a {self.type_name}, not {type(value).__name__}")
        data = encode_json(value)
        try:
            self._decoder.decode(data)
        except ValueError as error:
            raise InvalidArgument("payload", f"is not a valid {self.type_name}: {error}") from None
        return data

    def decode(self, data: bytes, /) -> T:
        """Decode JSON and check it against the payload type."""
        return self._decoder.decode(data)
