"""How Python values are sent to PostgreSQL: lists as binary arrays, every integer as bigint.

psycopg dumps a list element by element in Python, and as text; for a batch of a thousand
messages that was half of the whole time. A binary array is a header and its elements.

psycopg sends an integer as the smallest type that holds it. So a statement would count as another
one, and be prepared once more, whenever an id grows past 32,767 or past 2,147,483,647.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from struct import Struct
from typing import Any, NamedTuple

from psycopg.abc import AdaptContext, Buffer
from psycopg.adapt import Dumper
from psycopg.pq import Format
from psycopg.types.numeric import Int8BinaryDumper

_header = Struct("!5i").pack  # dimensions, nulls?, oid of the elements, length, lower bound
_length = Struct("!i").pack
_int4 = Struct("!ii").pack
_int8 = Struct("!iq").pack


class BinaryArray(NamedTuple):
    """A parameter that is ready to be sent."""

    array_oid: int
    data: bytes


class BinaryArrayDumper(Dumper):
    """Sends it, and tells the server what it is."""

    format = Format.BINARY

    def dump(self, obj: BinaryArray) -> Buffer:
        """Return the bytes."""
        return obj.data

    def get_key(self, obj: BinaryArray, format: Any) -> Any:  # noqa: A002, ARG002 - psycopg's signature
        """Keep the types apart."""
        return (self.cls, obj.array_oid)

    def upgrade(self, obj: BinaryArray, format: Any) -> "BinaryArrayDumper":  # noqa: A002, ARG002 - psycopg's signature
        """Return a dumper that knows the type of this array."""
        dumper = type(self)(self.cls)
        dumper.oid = obj.array_oid
        return dumper


_NULL = _length(-1)


def register_arrays(connection: AdaptContext) -> None:
    """Teach a connection to send our arrays; a caller's own connection too."""
    connection.adapters.register_dumper(BinaryArray, BinaryArrayDumper)


def _bytes(value: bytes) -> bytes:
    return _length(len(value)) + value


def _text(value: str | None) -> bytes:
    return _NULL if value is None else _bytes(value.encode())


class _ArrayType(NamedTuple):
    element_oid: int
    array_oid: int
    encode: Callable[[Any], bytes]


_BIGINT = _ArrayType(20, 1016, lambda value: _int8(8, value))
_INTEGER = _ArrayType(23, 1007, lambda value: _int4(4, value))
_TEXT = _ArrayType(25, 1009, _text)
_BYTEA = _ArrayType(17, 1001, _bytes)

# The columns that operations give in a QueryEach.
_COLUMNS: Mapping[str, _ArrayType] = {
    "id": _BIGINT,
    "part": _BIGINT,
    "token": _BIGINT,
    "due_at": _BIGINT,
    "delivered_at": _BIGINT,
    "tick_at": _BIGINT,
    "attempts": _INTEGER,
    "key": _TEXT,
    "config_hash": _TEXT,
    "reason": _TEXT,
    "headers": _TEXT,
    "payload": _BYTEA,
}


def arrays(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> dict[str, BinaryArray]:
    """Turn rows into one array per column."""
    by_column = zip(columns, zip(*rows, strict=True), strict=True)
    return {column: _array(column, values) for column, values in by_column}


def packed(column: str, length: int, values: Buffer, *, nulls: bool) -> BinaryArray:
    """Return the array of a column whose values are encoded already."""
    kind = _COLUMNS[column]
    return BinaryArray(kind.array_oid, _header(1, nulls, kind.element_oid, length, 1) + values)


def _array(column: str, values: Sequence[Any]) -> BinaryArray:
    encoded = b"".join(map(_COLUMNS[column].encode, values))
    return packed(column, len(values), encoded, nulls=None in values)


def register_integers(connection: AdaptContext) -> None:
    """Teach a connection of ours to send every integer in one way."""
    connection.adapters.register_dumper(int, Int8BinaryDumper)
