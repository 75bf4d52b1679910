"""A source that stops dead at a given point and says so, for others to kill what it runs in."""

import os
import signal
import threading
from collections.abc import Iterator, MutableMapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import InputPartition, WriterCommitMessage
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from duequeue.spark import DueQueueSource
from duequeue.spark.batch_writer import BatchWriter, OfferedPartition
from duequeue.spark.options import Options, parse
from duequeue.spark.stream_reader import StreamReader
from duequeue.spark.stream_writer import StreamWriter


class HaltingSource(DueQueueSource):
    """`format("halting")`, with two options more: the point to halt at, and a file to tell it."""

    @classmethod
    def name(cls) -> str:
        return "halting"

    def __init__(self, options: MutableMapping[str, str]) -> None:
        self._halt = Halt(options.pop("halt"), Path(options.pop("marker")))
        super().__init__(options)

    def streamReader(self, schema: StructType) -> StreamReader:  # noqa: N802 - Spark's name
        return HaltingReader(parse(self.options), schema, self._halt)

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:  # noqa: N802
        return HaltingStreamWriter(self._checked(schema, overwrite=overwrite), self._halt)

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        return HaltingBatchWriter(self._checked(schema, overwrite=overwrite), self._halt)


class Halt:
    """The point at which to halt."""

    def __init__(self, point: str, marker: Path) -> None:
        self._point = point
        self._marker = marker

    def at(self, point: str) -> None:
        """Say so and wait to be killed, if this is the point."""
        if point == self._point:
            self._marker.touch()
            threading.Event().wait()

    def kill_executor_at(self, point: str) -> None:
        """Kill the process that runs this one's daemon, once, if this is the point."""
        if point != self._point:
            return
        try:
            self._marker.touch(exist_ok=False)
        except FileExistsError:
            return
        status = Path(f"/proc/{os.getppid()}/status").read_text()
        (parent,) = [line.split()[1] for line in status.splitlines() if line.startswith("PPid:")]
        os.kill(int(parent), signal.SIGKILL)
        threading.Event().wait()


class HaltingReader(StreamReader):
    """Halts once the first batch is through."""

    def __init__(self, options: Options, schema: StructType, halt: Halt) -> None:
        super().__init__(options, schema)
        self._halt = halt

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        if start["sequence"] > 0:
            self._halt.at("committed, not acked")
        latest = super().latestOffset(start, limit)
        if start["sequence"] > 0 and latest != start:
            self._halt.at("leased, not logged")
        return latest

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        self._halt.at("logged, not read")
        rows = super().read(partition)
        yield next(rows)
        self._halt.at("read, not written")
        self._halt.kill_executor_at("executor reads")
        yield from rows


class HaltingStreamWriter(StreamWriter):
    """Halts on either side of the merge."""

    def __init__(self, options: Options, halt: Halt) -> None:
        super().__init__(options)
        self._halt = halt

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        self._halt.at("staged, not merged")
        super().commit(messages, batchId)
        self._halt.at("merged, not committed")


class HaltingBatchWriter(BatchWriter):
    """Loses its executor when its rows are written."""

    def __init__(self, options: Options, halt: Halt) -> None:
        super().__init__(options)
        self._halt = halt

    def write(self, iterator: Iterator[pa.RecordBatch]) -> OfferedPartition:
        offered = super().write(iterator)
        self._halt.kill_executor_at("executor writes")
        return offered
