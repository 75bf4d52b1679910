"""The reasons why rows cannot be offered, found for a whole Arrow batch at once."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from duequeue.codec import JsonCodec
from duequeue.headers import MAX_HEADERS_BYTES, encode_headers
from duequeue.instants import EARLIEST, LATEST
from duequeue.message import MAX_KEY_LENGTH, MAX_PAYLOAD_BYTES

_NOT_FINITE = r"[\[:]\s*(NaN|-?Infinity)\s*[,\]}]|,\s*(NaN|-?Infinity)\s*[,\]]"

_decode_json = JsonCodec().decode


class Fault(NamedTuple):
    """A column, the rows in which it is wrong, the fault, and a remedy if there is one."""

    column: str
    rows: pa.Array
    what: str
    remedy: str = ""


def faults(columns: Mapping[str, pa.Array], *, only_json: bool) -> Iterator[Fault]:
    """Find every fault in the columns of messages, whose instants are in milliseconds."""
    for name, column in columns.items():
        if name != "headers":
            yield Fault(name, pc.is_null(column), "is null")
    yield from _key_faults(columns["key"])
    yield from _payload_faults(columns["payload"], only_json=only_json)
    due = columns["due_at"]
    beyond = pc.or_(pc.less(due, EARLIEST), pc.greater(due, LATEST))
    yield Fault("due_at", beyond, "is outside the years 1 to 9999")
    if "headers" in columns:
        wrong = [not _are_headers(pairs) for pairs in columns["headers"]]
        yield Fault(
            "headers",
            pa.array(wrong, pa.bool_()),
            "contains a null or text that is not UTF-8, "
            f"or takes more than {MAX_HEADERS_BYTES} bytes",
        )


def _key_faults(keys: pa.Array) -> Iterator[Fault]:
    yield Fault("key", _are_not_text(keys), "is not UTF-8", "decode(…) it from its real encoding")
    lengths = pc.utf8_length(keys)
    yield Fault("key", pc.equal(lengths, 0), "is empty")
    long = pc.greater(lengths, MAX_KEY_LENGTH)
    yield Fault("key", long, f"has more than {MAX_KEY_LENGTH} characters")
    yield Fault("key", pc.match_substring(keys, "\0"), "contains a NUL")


def _payload_faults(payloads: pa.Array, *, only_json: bool) -> Iterator[Fault]:
    above = pc.greater(pc.binary_length(payloads), MAX_PAYLOAD_BYTES)
    yield Fault("payload", above, f"has more than {MAX_PAYLOAD_BYTES} bytes")
    if only_json:
        # A consumer would bury a payload that is not JSON as soon as it polls it.
        wrong = [payload is not None and not _is_json(payload) for payload in payloads.to_pylist()]
        if any(wrong):
            yield from _json_faults(payloads, pa.array(wrong, pa.bool_()))


def _json_faults(payloads: pa.Array, not_json: pa.Array) -> Iterator[Fault]:
    not_finite = pc.and_(not_json, pc.match_substring_regex(payloads, _NOT_FINITE))
    remedy = "JSON has neither, so replace it, for example by null"
    yield Fault("payload", not_finite, "contains NaN or infinity", remedy)
    remedy = "use to_json(…), or the option codec=text for plain text"
    yield Fault("payload", not_json, "is not JSON", remedy)


def _are_not_text(keys: pa.Array) -> pa.Array:
    """Mark the keys that are not UTF-8; strings from Spark may hold any bytes."""
    try:
        keys.cast(pa.binary()).cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([not _is_text(key) for key in keys], pa.bool_())
    return pa.repeat(pa.scalar(value=False), len(keys))


def _is_text(key: pa.Scalar) -> bool:
    try:
        key.as_py()
    except UnicodeDecodeError:
        return False
    return True


def _is_json(payload: bytes) -> bool:
    try:
        _decode_json(payload)
    except Exception:  # noqa: BLE001 - by contract, any error means undecodable
        return False
    return True


def _are_headers(headers: pa.Scalar) -> bool:
    try:
        pairs = headers.as_py()
        encode_headers(dict(pairs) if pairs else None)
    except (TypeError, ValueError):
        return False
    return True
