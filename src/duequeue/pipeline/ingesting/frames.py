"""Messages from any columns, and the reason why a row cannot become one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    LongType,
    MapType,
    NumericType,
    StringType,
    StructField,
    StructType,
    VariantType,
)

from duequeue.errors import InvalidArgument
from duequeue.pipeline.ingesting.sources import CORRUPT
from duequeue.spark.faults import faults
from duequeue.spark.written_rows import columns_of

MESSAGE = "message"
REASON = "reason"

_WITH_NULLS = {"ignoreNullFields": "false"}


@dataclass(frozen=True)
class Columns:
    """The columns that make a message.

    A single `payload` column that holds text is taken as it is. Several columns, or all the others
    if you name none, become a JSON object. `due_format` is a pattern of Spark for times in text.
    """

    key: str = "key"
    due_at: str = "due_at"
    payload: Sequence[str] = ()
    headers: str | None = None
    due_format: str | None = None


def checked_rows(frame: DataFrame, columns: Columns, codec: str) -> DataFrame:
    """Add to each row its message, and the reason if that message cannot be offered."""
    _check_names(frame, columns)
    message = {
        "key": F.col(_quoted(columns.key)).cast("string"),
        "payload": _payload(frame, columns, codec),
        "due_at": _due_at(frame.schema, columns),
    }
    if columns.headers is not None:
        message["headers"] = F.col(_quoted(columns.headers))
    parts = [value.alias(name) for name, value in message.items()]
    whole = frame.withColumn(MESSAGE, F.struct(*parts))
    return whole.withColumn(REASON, _reason(frame, columns, codec, list(message)))


def messages(rows: DataFrame) -> DataFrame:
    """Return the messages of checked rows that can be offered."""
    return rows.where(F.col(REASON).isNull()).select(f"{MESSAGE}.*")


def rejected(rows: DataFrame) -> DataFrame:
    """Return the unchanged rows that cannot be offered, each with its reason."""
    return rows.where(F.col(REASON).isNotNull()).drop(MESSAGE)


def reasons(rows: DataFrame) -> DataFrame:
    """Count the rows by reason, which is null for good rows."""
    return rows.groupBy(REASON).count()


def _check_names(frame: DataFrame, columns: Columns) -> None:
    named = [columns.key, columns.due_at, *columns.payload]
    for name in [*named, *([columns.headers] if columns.headers else [])]:
        if name not in frame.columns:
            known = ", ".join(column for column in frame.columns if column != CORRUPT)
            raise InvalidArgument("column", f"{name!r} is not in the source, which has: {known}")
    for name in (MESSAGE, REASON):
        if name in frame.columns:
            raise InvalidArgument(
                "column", f"{name!r} has a name that the job uses itself: rename it in the source"
            )


def _payload(frame: DataFrame, columns: Columns, codec: str) -> Column:
    names = list(columns.payload)
    if len(names) == 1:
        return _as_text(frame.schema[names[0]])
    if codec != "json":
        raise InvalidArgument("payload", f"must be one column for the codec {codec!r}, not {names}")
    used = {columns.key, columns.due_at, columns.headers, CORRUPT}
    names = names or [name for name in frame.columns if name not in used]
    return F.to_json(F.struct(*(F.col(_quoted(name)) for name in names)), _WITH_NULLS)


def _as_text(field: StructField) -> Column:
    kind, column = field.dataType, F.col(_quoted(field.name))
    if isinstance(kind, (StringType, BinaryType)):
        return column
    if isinstance(kind, NumericType) or kind.simpleString() == "boolean":
        return column.cast("string")
    if isinstance(kind, (StructType, ArrayType, MapType, VariantType)):
        return F.to_json(column, _WITH_NULLS)
    raise InvalidArgument(
        "column",
        f"{field.name!r} cannot be the payload by itself, because its type is "
        f"{kind.simpleString()}: cast it to string, or name other columns too",
    )


def _due_at(schema: StructType, columns: Columns) -> Column:
    kind, column = schema[columns.due_at].dataType, F.col(_quoted(columns.due_at))
    if isinstance(kind, StringType):
        pattern = [F.lit(columns.due_format)] if columns.due_format else []
        return F.try_to_timestamp(column, *pattern)
    if isinstance(kind, NumericType):
        # Numbers are floored; a value that is not a number or is too large becomes null.
        return (column - F.pmod(column, F.lit(1))).try_cast(LongType())
    return column.cast("timestamp")


def _reason(frame: DataFrame, columns: Columns, codec: str, parts: list[str]) -> Column:
    """Return the first reason that applies; the connector checks by the same rules again."""
    given = F.col(_quoted(columns.due_at)).isNotNull()
    not_a_time = F.when(
        given & F.col(f"{MESSAGE}.due_at").isNull(), f"{columns.due_at} is not a time"
    )
    names = {"key": columns.key, "due_at": columns.due_at, "headers": columns.headers or ""}
    if len(columns.payload) == 1:
        names["payload"] = columns.payload[0]
    possible = [not_a_time, _fault_finder(parts, names, codec)(F.col(MESSAGE))]
    if CORRUPT in frame.columns:
        possible = [F.when(F.col(CORRUPT).isNotNull(), "cannot be read"), *possible]
    return F.coalesce(*possible)


def _fault_finder(parts: list[str], names: dict[str, str], codec: str) -> Callable[..., Column]:
    def first_fault(rows: pa.Array) -> pa.Array:
        chunk = pa.record_batch({part: pc.struct_field(rows, part) for part in parts})
        found = pa.nulls(len(rows), pa.string())
        for fault in faults(columns_of(chunk), only_json=codec == "json"):
            reason = f"{names.get(fault.column, fault.column)} {fault.what}"
            found = pc.coalesce(found, pc.if_else(fault.rows, reason, None))
        return found

    # The type hints of Spark demand a third argument, which Spark itself warns against.
    finder: Callable[..., Column] = arrow_udf(first_fault, "string")  # type: ignore[call-overload]
    return finder


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
