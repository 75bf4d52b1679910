"""Filters of a Spark query that the database applies itself."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    StringStartsWith,
)

from duequeue.bulk.port import Conditions
from duequeue.instants import EARLIEST

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
# The names of a column's bounds in `Conditions`.
_INSTANTS = {"due_at": "due", "deliver_at": "deliver", "leased_until": "leased"}
# A payload may be null, if it is read as a column of its own type, and Redis has no `created_at`.
_NEVER_NULL = {"key", "due_at", "deliver_at", "attempt"}
_LAST_CHARACTER = "\U0010ffff"


def push(conditions: Conditions, filters: Iterable[Filter]) -> tuple[Conditions, list[Filter]]:
    """Return the conditions with the filters added, and the filters that Spark must apply."""
    left: list[Filter] = []
    for each in filters:
        added = _with_filter(conditions, each)
        if added is None:
            left.append(each)
        else:
            conditions = added
    return conditions, left


def _with_filter(conditions: Conditions, pushed: Filter) -> Conditions | None:
    """Return the conditions with one more filter, or None if Spark must apply it."""
    path: Sequence[str] = getattr(pushed, "attribute", ())
    column = path[0] if len(path) == 1 else None
    if isinstance(pushed, IsNotNull) and column in _NEVER_NULL:
        return conditions
    if column == "key":
        return _with_keys(conditions, pushed)
    if column in _INSTANTS:
        return _with_instants(conditions, column, pushed)
    return None


def _with_keys(conditions: Conditions, pushed: Filter) -> Conditions | None:
    match pushed:
        case EqualTo(value=str(key)) | EqualNullSafe(value=str(key)):
            return _only(conditions, [key])
        case In(value=values):
            keys = [key for key in values if key is not None]
            return _only(conditions, keys) if all(isinstance(key, str) for key in keys) else None
        case StringStartsWith(value=str(prefix)) if conditions.key_from is None:
            return _starting_with(conditions, prefix)
    return None


def _only(conditions: Conditions, keys: list[str]) -> Conditions:
    """Look for these keys alone; a key with a NUL cannot be in any queue."""
    before = conditions.keys
    chosen = {key for key in keys if "\0" not in key and (before is None or key in before)}
    return conditions._replace(keys=sorted(chosen))


def _starting_with(conditions: Conditions, prefix: str) -> Conditions | None:
    """Look for a range of keys; the order of characters is that of their bytes in UTF-8."""
    stem = prefix.rstrip(_LAST_CHARACTER)
    if "\0" in prefix or not stem:
        return None
    after = ord(stem[-1]) + 1
    if 0xD800 <= after <= 0xDFFF:  # noqa: PLR2004 - these numbers are not characters
        after = 0xE000
    return conditions._replace(key_from=prefix, key_before=stem[:-1] + chr(after))


def _with_instants(conditions: Conditions, column: str, pushed: Filter) -> Conditions | None:
    name = _INSTANTS[column]
    if column == "leased_until":
        if isinstance(pushed, IsNull):
            return _within(conditions, name, None, EARLIEST)
        conditions = _within(conditions, name, EARLIEST + 1, None)
        if isinstance(pushed, IsNotNull):
            return conditions
    bounds = _bounds(pushed)
    return None if bounds is None else _within(conditions, name, *bounds)


def _bounds(pushed: Filter) -> tuple[int | None, int | None] | None:
    """Return the first and the last millisecond that a comparison allows."""
    value: Any = getattr(pushed, "value", None)
    if not isinstance(value, datetime) or value.tzinfo is None:
        return None
    micros = (value - _EPOCH) // _MICROSECOND
    below, above = micros // 1000, -(-micros // 1000)
    bounds: dict[type[Filter], tuple[int | None, int | None]] = {
        GreaterThan: (below + 1, None),
        GreaterThanOrEqual: (above, None),
        LessThan: (None, above - 1),
        LessThanOrEqual: (None, below),
        EqualTo: (above, below),
        EqualNullSafe: (above, below),
    }
    return bounds.get(type(pushed))


def _within(conditions: Conditions, name: str, low: int | None, high: int | None) -> Conditions:
    """Narrow the bounds of a column."""
    first = _chosen(max, getattr(conditions, f"{name}_from"), low)
    last = _chosen(min, getattr(conditions, f"{name}_to"), high)
    narrowed: dict[str, Any] = {f"{name}_from": first, f"{name}_to": last}
    return conditions._replace(**narrowed)


def _chosen(choose: Callable[[Iterator[int]], int], *bounds: int | None) -> int | None:
    given = [bound for bound in bounds if bound is not None]
    return choose(iter(given)) if given else None
