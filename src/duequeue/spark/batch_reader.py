"""`spark.read.format("duequeue")` reads a snapshot of the queue and changes nothing."""

from collections.abc import Generator
from contextlib import closing

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from duequeue.backends import bulk_backend_for
from duequeue.port.bulk import SnapshotPart
from duequeue.spark.open_bulk import OpenBulk
from duequeue.spark.options import Options
from duequeue.spark.read_rows import RowReader, without_garbage_collection

PAGE_ROWS = 16_000


class SnapshotPartition(InputPartition):
    """A part of the snapshot of one kind of message."""

    def __init__(self, kind_id: int, part: SnapshotPart) -> None:
        super().__init__(part)
        self.kind_id = kind_id


class BatchReader(DataSourceReader):
    """Plans the parts on the driver and reads each part on an executor."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        """Take the snapshot and cut it into parts."""
        options = self._options
        with OpenBulk(options) as bulk:
            parts = bulk.snapshots().plan(options.num_partitions, options.snapshot_timeout / 1000)
            return [SnapshotPartition(bulk.store.kind_id, part) for part in parts]

    def read(self, partition: InputPartition) -> Generator[pa.RecordBatch, None, None]:
        """Read one part."""
        if not isinstance(partition, SnapshotPartition):
            raise TypeError(f"partition must be a SnapshotPartition, not {partition!r}")
        reader = RowReader(self._schema, permissive=self._options.permissive)
        page = self._options.batch_size or PAGE_ROWS
        snapshots = bulk_backend_for(self._options.url).snapshots(partition.kind_id)
        pages = snapshots.read(partition.value, page, with_payload=reader.with_payload)
        with closing(pages), without_garbage_collection():
            yield from map(reader.batch, pages)
