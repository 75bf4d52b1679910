"""The columns that Spark can read of a queue, and messages as Arrow batches of them."""

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
    VariantType,
)

from duequeue.bulk.port import COLUMNS, ID, PAYLOAD, BatchId, MessageColumns, MessageRow
from duequeue.errors import InvalidArgument, InvalidType, UndecodablePayload
from duequeue.headers import decode_headers
from duequeue.spark.json_payloads import JsonPayloads
from duequeue.spark.options import Options

_TYPES: dict[str, DataType] = {
    "key": StringType(),
    "payload": StringType(),
    "headers": MapType(StringType(), StringType()),
    "due_at": TimestampType(),
    "deliver_at": TimestampType(),
    "attempt": IntegerType(),
    "created_at": TimestampType(),
    "updated_at": TimestampType(),
    "leased_until": TimestampType(),
}
# Payloads of these types are JSON in the queue.
AS_JSON = (StructType, MapType, ArrayType, VariantType)
ATTEMPT = COLUMNS.index("attempt")
# A stream has one more column: who holds the message, to settle it before the rest of its batch.
LEASE = "lease"
LEASE_TYPE = StructType(
    [
        StructField("consumer", StringType()),
        StructField("sequence", LongType()),
        StructField("id", LongType()),
    ]
)
_MICROS_PER_MILLI = 1000  # a scalar of Arrow would import pandas in every worker
_DUE_AT = "due_at"
_DELIVER_AT = "deliver_at"


def full_schema(options: Options) -> StructType:
    """Return every column that can be read."""
    payload = BinaryType() if options.payload_type == "binary" else StringType()
    types = {**_TYPES, "payload": payload}
    return StructType([StructField(name, types[name]) for name in COLUMNS])


def schema_text(options: Options) -> str:
    """Return the full schema as text, with the payload's type from `payloadSchema`."""
    types = {field.name: field.dataType.simpleString() for field in full_schema(options).fields}
    types["payload"] = options.payload_schema or types["payload"]
    return ", ".join(f"{name} {kind}" for name, kind in types.items())


def check_schema(schema: StructType, options: Options, *, leased: bool = False) -> None:
    """Raise unless a schema given by the user names some of the columns, with their types."""
    known = {field.name: field.dataType for field in full_schema(options).fields}
    if leased:
        known[LEASE] = LEASE_TYPE
    for field in schema.fields:
        if schema.fieldNames().count(field.name) > 1:
            raise InvalidArgument("column", f"{field.name!r} occurs twice in the schema")
        if field.name not in known:
            raise InvalidArgument(
                "column",
                f"{field.name!r} cannot be read; the known columns are: {', '.join(known)}",
            )
        if field.name == "payload" and isinstance(field.dataType, AS_JSON):
            continue
        wanted = known[field.name].simpleString()
        if field.dataType.simpleString() != wanted:
            raise InvalidType(
                "column",
                f"{field.name!r} must be {wanted} in the schema, "
                f"not {field.dataType.simpleString()}",
            )


class RowReader:
    """Turns messages into Arrow batches of the requested columns."""

    def __init__(
        self, schema: StructType, batch: BatchId | None = None, *, permissive: bool = False
    ) -> None:
        self._arrow = to_arrow_schema(schema, timezone="UTC")
        self._json = _json_payloads(self._arrow, permissive=permissive)
        self._columns = [(name, _place(name)) for name in schema.fieldNames()]
        self._batch = batch

    @property
    def with_payload(self) -> bool:
        """Whether the payload is among the requested columns."""
        return any(at == PAYLOAD for _, at in self._columns)

    def misfit(self, row: MessageRow) -> str | None:
        """Return why a message's payload does not have the requested type, or None if it has."""
        try:
            self.batch_of([row])
        except UndecodablePayload as error:
            return str(error)
        return None

    def batch(self, columns: MessageColumns) -> pa.RecordBatch:
        """Return the messages as one batch.

        Raise UndecodablePayload if a payload should be text and is not.
        """
        arrays = {name: self._column(name, columns[at]) for name, at in self._columns}
        if _DELIVER_AT in arrays:
            late = arrays[_DELIVER_AT]
            due = arrays.get(_DUE_AT)
            if due is None:
                due = _arrow_array(_DUE_AT, columns[_place(_DUE_AT)], late.type)
            arrays[_DELIVER_AT] = due if late.null_count == len(late) else pc.coalesce(late, due)
        return pa.record_batch(list(arrays.values()), schema=self._arrow)

    def batch_of(self, rows: Sequence[MessageRow]) -> pa.RecordBatch:
        """Return rows as one batch, in the same way."""
        return self.batch(list(zip(*rows, strict=True)) or [()] * (ID + 1))

    def _column(self, name: str, values: Sequence[Any]) -> pa.Array:
        if name == "payload" and self._json is not None:
            return self._json.array(values)
        kind = self._arrow.field(name).type
        if name == LEASE and self._batch is not None:
            values = [{**self._batch._asdict(), "id": each} for each in values]
        return _arrow_array(name, values, kind)


def _json_payloads(schema: pa.Schema, *, permissive: bool) -> JsonPayloads | None:
    at = schema.get_field_index("payload")
    if at < 0 or not pa.types.is_nested(schema.field(at).type):
        return None
    return JsonPayloads(schema.field(at).type, permissive=permissive)


def _place(name: str) -> int:
    return ID if name == LEASE else COLUMNS.index(name)


def _arrow_array(name: str, values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(kind):
        return _instants(values, kind)
    if name == "headers":
        return _headers(values, kind)
    if name == "payload":
        return _payloads(values, kind)
    if name == "attempt":
        return _attempts(values, kind)
    return pa.array(values, kind)


def _instants(values: Sequence[int | None], kind: pa.DataType) -> pa.Array:
    """Return instants in milliseconds as those of Spark, which are in microseconds."""
    if _is_empty(values):
        return pa.nulls(len(values), kind)
    return pc.multiply_checked(pa.array(values, pa.int64()), _MICROS_PER_MILLI).view(kind)


def _attempts(values: Sequence[int | None], kind: pa.DataType) -> pa.Array:
    if _is_empty(values):
        return pa.repeat(pa.scalar(0, kind), len(values))
    return pc.fill_null(pa.array(values, kind), 0)


def _is_empty(values: Sequence[Any]) -> bool:
    """Return whether a column has only NULLs; looking at the first value first saves time."""
    return not values or (values[0] is None and values.count(None) == len(values))


def _headers(values: Sequence[str | None], kind: pa.DataType) -> pa.Array:
    if _is_empty(values):
        return pa.nulls(len(values), kind)
    return pa.array([None if text is None else decode_headers(text) for text in values], kind)


def _payloads(values: Sequence[bytes], kind: pa.DataType) -> pa.Array:
    try:
        return pa.array(values, pa.binary()).cast(
            kind
        )  # a cast checks the text faster than Python decodes it
    except pa.ArrowInvalid as error:
        raise UndecodablePayload(
            "a payload is not UTF-8: read this queue with the option payloadType=binary"
        ) from error


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Stop Python from looking for reference cycles, which took half of the time and found none."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
