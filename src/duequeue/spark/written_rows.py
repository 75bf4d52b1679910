"""A DataFrame to offer: its columns are checked, and its batches put into the form of a store."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    IntegralType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from duequeue.bulk.port import COLUMNS
from duequeue.errors import InvalidArgument, InvalidType
from duequeue.headers import encode_headers
from duequeue.spark.faults import Fault, faults
from duequeue.spark.json_payloads import as_json
from duequeue.spark.options import Options
from duequeue.spark.read_rows import AS_JSON

CHUNK_ROWS = 50_000
CHUNK_BYTES = 64 * 1024 * 1024

_COLUMNS: dict[str, tuple[type[DataType], ...]] = {
    "key": (StringType,),
    "payload": (StringType, BinaryType, *AS_JSON),
    "due_at": (TimestampType, LongType),
    "headers": (MapType,),
    "replace": (BooleanType,),
}
_KEYS = (StringType, IntegralType, DateType, TimestampType, TimestampNTZType, BinaryType)
_NOT_JSON = ("text", "bytes")
# An INSERT into a view that names only some columns has nulls in the others.
_READ_ONLY = tuple(name for name in COLUMNS if name not in _COLUMNS)
_REQUIRED = ("key", "payload", "due_at")


_EXPECTED = {
    "key": "string",
    "payload": "string or binary, or a struct, map, array or variant that becomes JSON",
    "due_at": "timestamp or bigint",
    "headers": "map<string,string>",
    "replace": "boolean",
}


def check_columns(schema: StructType, options: Options) -> None:
    """Raise an error unless these columns can be offered."""
    names = schema.fieldNames()
    for name in _REQUIRED:
        if name not in names:
            raise InvalidArgument(
                "column", f"{name!r} is missing; the DataFrame has: {', '.join(names)}"
            )
    inserted = set(names) >= set(COLUMNS)
    for column in schema.fields:
        if column.name in _COLUMNS:
            _check_type(column.name, column.dataType, options)
        elif not (inserted and column.name in _READ_ONLY):
            raise _unwritable(column.name)
    if "replace" in names and options.mode == "ignore":
        raise InvalidArgument(
            "column", "'replace' contradicts the option mode=ignore: remove one of them"
        )


def _unwritable(name: str) -> ValueError:
    return ValueError(
        f"column {name!r} cannot be written: select only {', '.join(_REQUIRED)}, "
        "and optionally headers and replace"
    )


def _check_type(name: str, kind: DataType, options: Options) -> None:
    if isinstance(kind, TimestampNTZType):
        raise InvalidType(
            "column",
            f"{name!r} has no time zone ({kind.simpleString()}): "
            "cast it to timestamp, which reads it in the session's time zone",
        )
    fits = isinstance(kind, _COLUMNS[name])
    if name == "headers" and isinstance(kind, MapType):
        fits = _maps_strings(kind)
    if name == "payload" and isinstance(kind, AS_JSON) and options.codec in _NOT_JSON:
        raise InvalidType(
            "column",
            f"'payload' must be string or binary for the codec {options.codec}, "
            f"not {kind.simpleString()}",
        )
    if name == "payload":
        _check_keys(kind)
    if not fits:
        raise InvalidType(
            "column", f"{name!r} must be {_EXPECTED[name]}, not {kind.simpleString()}"
        )


def _check_keys(kind: DataType) -> None:
    """Raise if a map inside a payload has keys that do not come back from the names of JSON."""
    if isinstance(kind, MapType):
        if not isinstance(kind.keyType, _KEYS):
            raise InvalidType(
                "column",
                "'payload' has a map whose keys must be strings, integers, dates, "
                f"timestamps or binary to become JSON, not {kind.keyType.simpleString()}",
            )
        _check_keys(kind.valueType)
    elif isinstance(kind, ArrayType):
        _check_keys(kind.elementType)
    elif isinstance(kind, StructType):
        for field in kind.fields:
            _check_keys(field.dataType)


def _maps_strings(kind: MapType) -> bool:
    return isinstance(kind.keyType, StringType) and isinstance(kind.valueType, StringType)


def chunks(batches: Iterator[pa.RecordBatch], most: int) -> Iterator[pa.RecordBatch]:
    """Gather the batches of Spark into larger ones; each becomes one transaction."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        for start in range(0, batch.num_rows, most):
            waiting.append(batch.slice(start, most))
            rows = sum(each.num_rows for each in waiting)
            if rows >= most or sum(each.nbytes for each in waiting) >= CHUNK_BYTES:
                yield pa.concat_batches(waiting)
                waiting = []
    if waiting:
        yield pa.concat_batches(waiting)


def prepared(chunk: pa.RecordBatch, options: Options) -> pa.RecordBatch:
    """Check a whole batch, and return it as `BulkStore` takes it: sorted by key, each key once."""
    for name in _READ_ONLY:
        if name in chunk.schema.names and chunk[name].null_count < chunk.num_rows:
            raise _unwritable(name)
    columns = columns_of(chunk)
    only_json = options.only_json or pa.types.is_nested(chunk["payload"].type)
    for fault in faults(columns, only_json=only_json):
        _refuse(fault, columns["key"])
    upsert = pa.repeat(options.mode == "upsert", chunk.num_rows)
    rows = {"replace": upsert, **columns, "headers": _headers(columns.get("headers"), chunk)}
    return _sorted_by_key(pa.record_batch(rows))


def columns_of(chunk: pa.RecordBatch) -> dict[str, pa.Array]:
    """Return the columns of messages in the types in which they are checked and stored."""
    named = zip(chunk.schema.names, chunk.columns, strict=True)
    columns = {name: column for name, column in named if name in _COLUMNS}
    payload = chunk["payload"]
    return {
        **columns,
        "key": chunk["key"].cast(pa.string()),
        "payload": as_json(payload)
        if pa.types.is_nested(payload.type)
        else payload.cast(pa.binary()),
        "due_at": _millis(chunk["due_at"]),
    }


def _millis(column: pa.Array) -> pa.Array:
    if pa.types.is_timestamp(column.type):
        # In the session's time zone, Arrow would refuse the hour that occurs twice in autumn.
        instants = column.cast(pa.timestamp(column.type.unit, "UTC"))
        floored = pc.floor_temporal(instants, unit="millisecond")
        column = floored.cast(pa.timestamp("ms", "UTC"))
    return column.cast(pa.int64())


def _headers(column: pa.Array | None, chunk: pa.RecordBatch) -> pa.Array:
    if column is None or column.null_count == len(column):
        return pa.nulls(chunk.num_rows, pa.string())
    encoded = [encode_headers(dict(pairs) if pairs else None) for pairs in column.to_pylist()]
    return pa.array(encoded, pa.string())


def _sorted_by_key(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Sort by key; if a key occurs twice, keep the row that offering one by one would leave."""
    rows = rows.take(pc.sort_indices(rows["key"]))
    keys = rows["key"]
    if not pc.any(pc.equal(keys[1:], keys[:-1])).as_py():
        return rows
    kept: dict[str, int] = {}
    for at, (key, replace) in enumerate(
        zip(keys.to_pylist(), rows["replace"].to_pylist(), strict=True)
    ):
        if replace or key not in kept:
            kept[key] = at
    return rows.take(pa.array(kept.values(), pa.int64()))


def _refuse(fault: Fault, keys: pa.Array) -> None:
    at = pc.index(fault.rows, value=True).as_py()
    if at >= 0:
        stored = keys.cast(pa.binary())[at].as_py()
        key = None if stored is None else stored.decode(errors="backslashreplace")
        shown = f"{key[:40]!r}…" if key and len(key) > 40 else repr(key)  # noqa: PLR2004 - short enough to read
        remedy = f": {fault.remedy}" if fault.remedy else ""
        raise InvalidArgument(
            "column", f"{fault.column!r} {fault.what} in the row with the key {shown}{remedy}"
        )
