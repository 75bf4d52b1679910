"""Payloads as columns: structs, maps, arrays and variants, which are JSON in the queue."""

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from math import isfinite, isnan
from typing import Annotated, Any, TypeAlias, TypedDict

import msgspec
import pyarrow as pa
from pyspark.sql.types import VariantVal

from duequeue.errors import InvalidType, UndecodablePayload

Convert: TypeAlias = Callable[[Any], Any]

_MISFITS = (msgspec.MsgspecError, pa.ArrowException, ValueError, TypeError, OverflowError)
_PLAIN: dict[str, Any] = {
    "float": float,
    "double": float,
    "string": str,
    "bool": bool,
    "binary": bytes,
    "date32[day]": date,
}


def as_json(column: pa.Array) -> pa.Array:
    """Encode a column of structs, maps, lists or variants as JSON; nulls inside it are kept.

    NaN and infinity are written as such. That is not JSON, so `faults` finds these rows.
    """
    plain = _plain(column.type)
    encode = msgspec.json.Encoder(decimal_format="number").encode
    encoded = [None if value is None else encode(plain(value)) for value in column.to_pylist()]
    return pa.array(encoded, pa.binary())


class JsonPayloads:
    """Decodes JSON into one Arrow type.

    A field that is missing is null, and a field that the type does not name is ignored.
    """

    def __init__(self, kind: pa.DataType, *, permissive: bool) -> None:
        self._kind = kind
        self._decode = msgspec.json.Decoder(_decodable(kind)).decode
        self._restore = _restored(kind)
        self._permissive = permissive

    def array(self, payloads: Sequence[bytes]) -> pa.Array:
        """Decode payloads; one that does not fit is an error, or null if this is permissive."""
        try:
            return self._array(payloads)
        except _MISFITS as error:
            if not self._permissive:
                raise UndecodablePayload(f"a payload does not fit its column: {error}") from error
        return self._array([each if self._fits(each) else b"null" for each in payloads])

    def _array(self, payloads: Sequence[bytes]) -> pa.Array:
        return pa.array([self._restore(self._decode(each)) for each in payloads], self._kind)

    def _fits(self, payload: bytes) -> bool:
        try:
            self._array([payload])
        except _MISFITS:
            return False
        return True


def _is_variant(kind: pa.DataType) -> bool:
    if not pa.types.is_struct(kind) or kind.get_field_index("metadata") < 0:
        return False
    return b"variant" in (kind.field("metadata").metadata or {})


def _fields(kind: pa.DataType) -> list[pa.Field]:
    return [kind.field(at) for at in range(kind.num_fields)]


def _plain(kind: pa.DataType) -> Convert:
    """Return a function that turns a value of pyarrow into one that can be encoded."""
    if _is_variant(kind):
        return _unless_null(_json_of_variant)
    if pa.types.is_timestamp(kind) and kind.tz:  # equal in every time zone of a session
        return _unless_null(lambda instant: instant.astimezone(UTC))
    if pa.types.is_floating(kind):
        return _unless_null(_visible)
    return _inside(kind, _plain)


def _restored(kind: pa.DataType) -> Convert:
    """Return a function that turns a decoded value into one that pyarrow takes."""
    if _is_variant(kind):
        return _variant_of_json
    return _inside(kind, _restored)


def _inside(kind: pa.DataType, convert: Callable[[pa.DataType], Convert]) -> Convert:
    """Return a function that converts the parts of a struct, a map or a list."""
    if pa.types.is_struct(kind):
        parts = {field.name: convert(field.type) for field in _fields(kind)}
        return _unless_null(
            lambda value: {name: part(value.get(name)) for name, part in parts.items()}
        )
    if pa.types.is_map(kind):
        key, item = convert(kind.key_type), convert(kind.item_type)
        return _unless_null(
            lambda pairs: {key(name): item(value) for name, value in dict(pairs).items()}
        )
    if pa.types.is_list(kind):
        each = convert(kind.value_type)
        return _unless_null(lambda values: [each(value) for value in values])
    return lambda value: value


def _unless_null(convert: Convert) -> Convert:
    return lambda value: None if value is None else convert(value)


def _visible(number: float) -> float | msgspec.Raw:
    """Return the number, or its name if msgspec would write null instead of it."""
    if isfinite(number):
        return number
    if isnan(number):
        return msgspec.Raw(b"NaN")
    return msgspec.Raw(b"Infinity" if number > 0 else b"-Infinity")


def _json_of_variant(value: dict[str, bytes]) -> msgspec.Raw:
    return msgspec.Raw(VariantVal(value["value"], value["metadata"]).toJson().encode())


def _variant_of_json(raw: msgspec.Raw | None) -> dict[str, bytes] | None:
    if raw is None or bytes(raw) == b"null":
        return None
    parsed = VariantVal.parseJson(bytes(raw).decode())
    return {"value": parsed.value, "metadata": parsed.metadata}


def _decodable(kind: pa.DataType) -> Any:
    """Return the type that msgspec checks while it decodes; null is always allowed."""
    if _is_variant(kind):
        return msgspec.Raw  # null too
    if pa.types.is_struct(kind):
        fields = {field.name: _decodable(field.type) for field in _fields(kind)}
        return TypedDict("Payload", fields, total=False) | None  # type: ignore[operator]
    if pa.types.is_map(kind):
        return dict[_simple(kind.key_type), _decodable(kind.item_type)] | None  # type: ignore[misc]
    if pa.types.is_list(kind):
        return list[_decodable(kind.value_type)] | None  # type: ignore[misc]
    return _simple(kind) | None


def _simple(kind: pa.DataType) -> Any:
    """Return the type for a value without parts."""
    if pa.types.is_integer(kind):
        least = 1 << (kind.bit_width - 1)
        return Annotated[int, msgspec.Meta(ge=-least, le=least - 1)]
    if pa.types.is_timestamp(kind):
        return Annotated[datetime, msgspec.Meta(tz=kind.tz is not None)]
    if pa.types.is_decimal(kind):
        return Decimal
    if str(kind) not in _PLAIN:
        raise InvalidType("column", f"'payload' cannot contain the type {kind}")
    return _PLAIN[str(kind)]
