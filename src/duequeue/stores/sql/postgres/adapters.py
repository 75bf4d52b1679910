"""How values are sent to PostgreSQL: lists as binary arrays, every integer as a bigint.

psycopg dumps a list element by element in Python, and as text. For a batch of a thousand messages
that took half of the whole time. A binary array is a header followed by its elements.

psycopg sends an integer as the smallest type that holds it. A statement would then count as a new
one, and be prepared again, whenever an id grows past 32,767 or past 2,147,483,647.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from struct import Struct
from typing import Any, NamedTuple

from psycopg.abc import AdaptContext, Buffer
from psycopg.types.numeric import Int8BinaryDumper
from psycopg.types.string import BytesBinaryDumper

_header = Struct("!5i").pack  # dimensions, nulls?, oid of the elements, length, lower bound
_length = Struct("!i").pack
_bigint = partial(Struct("!iq").pack, 8)
_NULL = _length(-1)


class BinaryArray(bytes):
    """A parameter that is ready to be sent. psycopg knows its type by its class."""

    __slots__ = ()


class BigintArray(BinaryArray):
    """A `bigint[]`."""

    __slots__ = ()


class IntegerArray(BinaryArray):
    """An `integer[]`."""

    __slots__ = ()


class BooleanArray(BinaryArray):
    """A `boolean[]`."""

    __slots__ = ()


class TextArray(BinaryArray):
    """A `text[]`."""

    __slots__ = ()


class ByteaArray(BinaryArray):
    """A `bytea[]`."""

    __slots__ = ()


ARRAY_OIDS: Mapping[type, int] = {
    BigintArray: 1016,
    IntegerArray: 1007,
    BooleanArray: 1000,
    TextArray: 1009,
    ByteaArray: 1001,
}


class BinaryArrayDumper(BytesBinaryDumper):
    """Sends the bytes as the array that their class names.

    The class itself has no oid, because psycopg would then send a caller's own lists with it too,
    wherever a COPY asks for that type.
    """

    oid = 0

    def __init__(self, cls: type, context: AdaptContext | None = None) -> None:
        super().__init__(cls, context)
        self.oid = ARRAY_OIDS[cls]


def register_arrays(connection: AdaptContext) -> None:
    """Teach a connection to send our arrays; a caller's own connection too."""
    for array in ARRAY_OIDS:
        connection.adapters.register_dumper(array, BinaryArrayDumper)


def register_integers(connection: AdaptContext) -> None:
    """Teach a connection of ours to send every integer in one way."""
    connection.adapters.register_dumper(int, Int8BinaryDumper)


def _text(value: str | None) -> bytes:
    if value is None:
        return _NULL
    encoded = value.encode()
    return _length(len(encoded)) + encoded


def _bigint_or_null(value: int | None) -> bytes:
    return _NULL if value is None else _bigint(value)


def _bytes(value: bytes) -> bytes:
    return _length(len(value)) + value


class _ArrayType(NamedTuple):
    array: type[BinaryArray]
    element_oid: int
    encode: Callable[[Any], bytes]


_BIGINT = _ArrayType(BigintArray, 20, _bigint)
_NULLABLE_BIGINT = _ArrayType(BigintArray, 20, _bigint_or_null)
_INTEGER = _ArrayType(IntegerArray, 23, partial(Struct("!ii").pack, 4))
_BOOLEAN = _ArrayType(BooleanArray, 16, partial(Struct("!i?").pack, 1))
_TEXT = _ArrayType(TextArray, 25, _text)
_BYTEA = _ArrayType(ByteaArray, 17, _bytes)

# The columns that operations give in a QueryEach.
_COLUMNS: Mapping[str, _ArrayType] = {
    "id": _BIGINT,
    "part": _BIGINT,
    "token": _BIGINT,
    "due_at": _BIGINT,
    "expires_at": _NULLABLE_BIGINT,
    "delivered_at": _BIGINT,
    "handler_ms": _NULLABLE_BIGINT,
    "tick_at": _BIGINT,
    "attempts": _INTEGER,
    "replace": _BOOLEAN,
    "key": _TEXT,
    "config_hash": _TEXT,
    "reason": _TEXT,
    "headers": _TEXT,
    "note": _TEXT,
    "payload": _BYTEA,
}


_ONE_VALUE = {column: _header(1, 0, kind.element_oid, 1, 1) for column, kind in _COLUMNS.items()}
_ONE_NULL = {
    column: kind.array(_header(1, 1, kind.element_oid, 1, 1) + _NULL)
    for column, kind in _COLUMNS.items()
}


def arrays(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> dict[str, BinaryArray]:
    """Turn rows into one array per column."""
    found: dict[str, BinaryArray] = {}
    if len(rows) == 1:  # as for every offer and ack of a single message
        for column, value in zip(columns, rows[0], strict=True):
            array, _, encode = _COLUMNS[column]
            found[column] = (
                _ONE_NULL[column] if value is None else array(_ONE_VALUE[column] + encode(value))
            )
        return found
    for column, values in zip(columns, zip(*rows, strict=True), strict=True):
        array, element_oid, encode = _COLUMNS[column]
        header = _header(1, None in values, element_oid, len(values), 1)
        if values.count(None) == len(values):  # as for most headers and expiries
            found[column] = array(header + _NULL * len(values))
        else:
            found[column] = array(header + b"".join(map(encode, values)))
    return found


def packed(column: str, length: int, values: Buffer, *, nulls: bool) -> BinaryArray:
    """Return the array of a column whose values are encoded already."""
    array, element_oid, _ = _COLUMNS[column]
    return array(_header(1, nulls, element_oid, length, 1) + values)
