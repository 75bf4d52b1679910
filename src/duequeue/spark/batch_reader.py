"""`spark.read.format("duequeue")` reads a snapshot of the queue and changes nothing."""

from collections.abc import Generator, Iterable
from contextlib import closing
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from duequeue.bulk import bulk_backend_for
from duequeue.bulk.port import Conditions, SnapshotPart, SnapshotQuery
from duequeue.spark.open_bulk import FIRST_CONTACT, OpenBulk
from duequeue.spark.options import Options
from duequeue.spark.pushed_filters import push
from duequeue.spark.read_rows import RowReader, without_garbage_collection

if TYPE_CHECKING:
    import pyarrow as pa

PAGE_ROWS = 16_000


class SnapshotPartition(InputPartition):
    """A part of the snapshot of one kind of message."""

    def __init__(self, kind_id: int, part: SnapshotPart) -> None:
        super().__init__(part)
        self.kind_id = kind_id


class _FilterPushdown:
    """A `pushFilters` that Spark calls if its filter pushdown is on, and ignores otherwise.

    If pushdown is off, which is the default, Spark refuses a reader whose `pushFilters` is not the
    inherited one. Spark recognises the inherited one by the attribute `__func__`.
    """

    def __init__(self, reader: "BatchReader") -> None:
        self._reader = reader
        self.__func__ = DataSourceReader.pushFilters

    def __call__(self, filters: list[Filter]) -> Iterable[Filter]:
        reader = self._reader
        reader.conditions, left = push(reader.conditions, filters)
        return left


class BatchReader(DataSourceReader):
    """Plans the parts on the driver and reads each part on an executor."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self.conditions = Conditions()

    @property
    def pushFilters(self) -> _FilterPushdown:  # noqa: N802 - Spark's name
        """Take over the filters that the database can apply, and return the others."""
        return _FilterPushdown(self)

    def partitions(self) -> list[InputPartition]:
        """Take the snapshot and cut it into parts."""
        options = self._options
        many = 1 if self.conditions.are_narrow else options.num_partitions
        with OpenBulk(options, FIRST_CONTACT) as bulk:
            parts = bulk.plan(many, options.snapshot_timeout / 1000)
            return [SnapshotPartition(bulk.store.kind_id, part) for part in parts]

    def read(self, partition: InputPartition) -> Generator["pa.RecordBatch", None, None]:
        """Read one part."""
        if not isinstance(partition, SnapshotPartition):
            raise TypeError(f"partition must be a SnapshotPartition, not {partition!r}")
        options = self._options
        reader = RowReader(self._schema, permissive=options.permissive)
        page = options.batch_size or PAGE_ROWS
        query = SnapshotQuery(reader.with_payload, self.conditions, options.fail_on_snapshot_loss)
        snapshots = bulk_backend_for(options.url).snapshots(partition.kind_id)
        pages = snapshots.read(partition.value, page, query)
        with closing(pages), without_garbage_collection():
            yield from map(reader.batch, pages)
