"""What a DataFrame offers: its columns checked, its batches as a store takes them."""

from collections.abc import Iterator

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from duequeue.headers import encode_headers
from duequeue.instants import EARLIEST, LATEST
from duequeue.message import MAX_KEY_LENGTH, MAX_PAYLOAD_BYTES
from duequeue.spark.options import Options

CHUNK_ROWS = 50_000
CHUNK_BYTES = 64 * 1024 * 1024

_COLUMNS: dict[str, tuple[type[DataType], ...]] = {
    "key": (StringType,),
    "payload": (StringType, BinaryType),
    "due_at": (TimestampType, LongType),
    "headers": (MapType,),
    "replace": (BooleanType,),
}
_REQUIRED = ("key", "payload", "due_at")

_check_json = msgspec.json.Decoder(msgspec.Raw).decode


def check_columns(schema: StructType, options: Options) -> None:
    """Raise unless these columns can be offered."""
    names = schema.fieldNames()
    for name in _REQUIRED:
        if name not in names:
            raise ValueError(f"column {name!r} is missing; the DataFrame has: {', '.join(names)}")
    for column in schema.fields:
        if column.name not in _COLUMNS:
            raise ValueError(
                f"column {column.name!r} cannot be written: select only "
                f"{', '.join(_COLUMNS)}, the last two if need be"
            )
        _check_type(column.name, column.dataType)
    if "replace" in names and options.mode == "ignore":
        raise ValueError("column 'replace' contradicts the option mode=ignore: leave one of them")


def _check_type(name: str, kind: DataType) -> None:
    if isinstance(kind, TimestampNTZType):
        raise TypeError(
            f"column {name!r} has no time zone ({kind.simpleString()}): "
            "cast it to timestamp, which takes it as of the session's zone"
        )
    wanted = _COLUMNS[name]
    if not isinstance(kind, wanted) or (isinstance(kind, MapType) and not _maps_strings(kind)):
        expected = (
            "map<string,string>"
            if name == "headers"
            else " or ".join(each().simpleString() for each in wanted)
        )
        raise TypeError(f"column {name!r} must be {expected}, not {kind.simpleString()}")


def _maps_strings(kind: MapType) -> bool:
    return isinstance(kind.keyType, StringType) and isinstance(kind.valueType, StringType)


def chunks(batches: Iterator[pa.RecordBatch], most: int) -> Iterator[pa.RecordBatch]:
    """Gather Spark's batches into larger ones, each a transaction."""
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
    """Check a batch whole, and return it as `bulk.BulkStore` takes it: by key, each key once."""
    names = chunk.schema.names
    keys = chunk["key"].cast(pa.string())
    for name in names:
        if name != "headers":
            _refuse(pc.is_null(chunk[name]), keys, name, "is null")
    _check_keys(keys)
    rows = pa.record_batch(
        {
            "key": keys,
            "payload": _payloads(chunk["payload"], keys, options.codec),
            "due_at": _instants(chunk["due_at"], keys),
            "headers": _headers(chunk["headers"] if "headers" in names else None, keys),
            "replace": chunk["replace"]
            if "replace" in names
            else pa.repeat(options.mode == "upsert", chunk.num_rows),
        }
    )
    return _sorted_once(rows)


def _check_keys(keys: pa.Array) -> None:
    lengths = pc.utf8_length(keys)
    _refuse(pc.equal(lengths, 0), keys, "key", "is empty")
    _refuse(
        pc.greater(lengths, MAX_KEY_LENGTH), keys, "key", f"has above {MAX_KEY_LENGTH} characters"
    )
    _refuse(pc.match_substring(keys, "\0"), keys, "key", "has a NUL in it")


def _payloads(column: pa.Array, keys: pa.Array, codec: str) -> pa.Array:
    payloads = column.cast(pa.binary())
    above = pc.greater(pc.binary_length(payloads), MAX_PAYLOAD_BYTES)
    _refuse(above, keys, "payload", f"has above {MAX_PAYLOAD_BYTES} bytes")
    if codec == "json":
        _check_all_json(payloads, keys)
    return payloads


def _check_all_json(payloads: pa.Array, keys: pa.Array) -> None:
    """What is no JSON would be buried by the first consumer that polls it."""
    for row, payload in enumerate(payloads.to_pylist()):
        try:
            _check_json(payload)
        except msgspec.DecodeError as error:
            raise ValueError(
                f"column 'payload' is no JSON in the row with the key {keys[row].as_py()!r}: "
                f"{error}; use to_json(…), or the option codec=text for plain text"
            ) from None


def _instants(column: pa.Array, keys: pa.Array) -> pa.Array:
    if pa.types.is_timestamp(column.type):
        floored = pc.floor_temporal(column, unit="millisecond")
        column = floored.cast(pa.timestamp("ms", column.type.tz))
    millis = column.cast(pa.int64())
    beyond = pc.or_(pc.less(millis, EARLIEST), pc.greater(millis, LATEST))
    _refuse(beyond, keys, "due_at", "lies outside of the years 1 to 9999")
    return millis


def _headers(column: pa.Array | None, keys: pa.Array) -> pa.Array:
    if column is None or column.null_count == len(column):
        return pa.nulls(len(keys), pa.string())
    encoded = []
    for row, pairs in enumerate(column.to_pylist()):
        try:
            encoded.append(encode_headers(dict(pairs) if pairs else None))
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"column 'headers' is wrong in the row with the key {keys[row].as_py()!r}: {error}"
            ) from None
    return pa.array(encoded, pa.string())


def _sorted_once(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Sort by key; of the same key twice keep what offering one by one would leave."""
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


def _refuse(wrong: pa.Array, keys: pa.Array, name: str, fault: str) -> None:
    at = pc.index(wrong, value=True).as_py()
    if at >= 0:
        key = keys[at].as_py()
        shown = f"{key[:40]!r}…" if key and len(key) > 40 else repr(key)  # noqa: PLR2004 - to be read
        raise ValueError(f"column {name!r} {fault} in the row with the key {shown}")
