"""The data source for the history of a database: one day between two ids, read in parts."""

from collections.abc import Callable, Iterator
from datetime import date
from itertools import pairwise
from math import ceil
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import IntegerType, LongType, StringType, StructType, TimestampType

from duequeue.history import History
from duequeue.port.history_table import DayBounds, SettledRow
from duequeue.spark.read_rows import without_garbage_collection

PART_ROWS = 250_000
PAGE_ROWS = 10_000

SETTLED = (
    StructType()
    .add("id", LongType())
    .add("key", StringType())
    .add("type", StringType())
    .add("due_at", TimestampType())
    .add("delivered_at", TimestampType())
    .add("settled_at", TimestampType())
    .add("attempts", IntegerType())
    .add("outcome", StringType())
    .add("handler_ms", LongType())
    .add("queue", StringType())
)

# A count does not need to know which message a row is about, so these columns are left out.
ANONYMOUS = StructType([each for each in SETTLED if each.name not in {"id", "key", "type"}])

_INSTANT = pa.timestamp("us", "UTC")


class HistorySource(DataSource):
    """`format("duequeue-history")`, with the options url, day, first_id, last_id and rows."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `format(…)`."""
        return "duequeue-history"

    def schema(self) -> StructType:
        """Return the columns."""
        return SETTLED

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader, which reads some or all columns on executors."""
        given = self.options
        bounds = DayBounds(*(int(given[name]) for name in DayBounds._fields))
        day = date.fromisoformat(given["day"])
        return HistoryReader(given["url"], day, bounds, schema.fieldNames())


class IdRange(NamedTuple):
    """The ids above `after_id`, up to and including `until_id`."""

    after_id: int
    until_id: int


class HistoryPartition(InputPartition):
    """A range of ids."""

    value: IdRange


class HistoryReader(DataSourceReader):
    """Opens the history once for each part; the driver itself holds no rows."""

    def __init__(self, url: str, day: date, bounds: DayBounds, columns: list[str]) -> None:
        self._columns = columns
        self._url = url
        self._day = day
        self._bounds = bounds

    def partitions(self) -> list[InputPartition]:
        """Cut the ids into ranges."""
        return [HistoryPartition(ids) for ids in id_ranges(self._bounds, PART_ROWS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one range, page by page."""
        after_id, until_id = partition.value
        with History.open(self._url, migrate=False) as history, without_garbage_collection():
            while rows := history.day_rows(self._day, after_id, until_id, PAGE_ROWS):
                yield as_batch(rows, self._columns)
                after_id = rows[-1].id


def id_ranges(bounds: DayBounds, most_rows: int) -> list[IdRange]:
    """Cut a day into equal ranges of ids, of at most `most_rows` rows if ids are spread evenly."""
    parts = max(1, ceil(bounds.rows / most_rows))
    before, ids = bounds.first_id - 1, bounds.last_id - bounds.first_id + 1
    cuts = [before + ids * number // parts for number in range(parts + 1)]
    return [IdRange(*cut) for cut in pairwise(cuts)]


def queue_and_type(kind: str) -> tuple[str, str]:
    """Split a kind of message into the names of its queue and its payload type."""
    queue, _, type_name = kind.partition("|")
    return queue, type_name


def as_batch(rows: list[SettledRow], columns: list[str]) -> pa.RecordBatch:
    """Return these columns of rows as an Arrow batch for Spark."""
    ids, kinds, keys, due, delivered, settled, attempts, outcomes, handled = zip(*rows, strict=True)
    # There are few kinds, so each one is split once and not once a row.
    coded = pa.array(kinds, pa.string()).dictionary_encode()
    queues, types = zip(*map(queue_and_type, coded.dictionary.to_pylist()), strict=True)
    made: dict[str, Callable[[], pa.Array]] = {
        "id": lambda: pa.array(ids, pa.int64()),
        "key": lambda: pa.array(keys, pa.string()),
        "type": lambda: pa.array(types, pa.string()).take(coded.indices),
        "due_at": lambda: _instants(due),
        "delivered_at": lambda: _instants(delivered),
        "settled_at": lambda: _instants(settled),
        "attempts": lambda: pa.array(attempts, pa.int32()),
        "outcome": lambda: pa.array(outcomes, pa.string()),
        "handler_ms": lambda: pa.array(handled, pa.int64()),
        "queue": lambda: pa.array(queues, pa.string()).take(coded.indices),
    }
    return pa.record_batch({name: made[name]() for name in columns})


def _instants(millis: tuple[int | None, ...]) -> pa.Array:
    return pa.array(millis, pa.timestamp("ms", "UTC")).cast(_INSTANT)
