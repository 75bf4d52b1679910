"""`df.writeStream.format("duequeue")`: each micro-batch offered exactly once.

Spark runs a batch again after a crash, under the same number. Executors therefore only stage their
rows; the driver merges them and notes the number in one transaction, and a batch whose number is
noted is not merged again, even if its messages were consumed meanwhile.
"""

import logging
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from duequeue.instants import LATEST
from duequeue.port.bulk import StageId
from duequeue.spark.open_bulk import OpenBulk
from duequeue.spark.options import Options
from duequeue.spark.written_rows import CHUNK_ROWS, chunks, prepared

logger = logging.getLogger("duequeue.spark")

_QUERY_ID = "sql.streaming.queryId"
_BATCH_ID = "streaming.sql.batchId"


@dataclass
class Staged(WriterCommitMessage):
    """What one partition has staged: how many rows in each part.

    The driver knows the query only from here.
    """

    app: str
    stage: StageId
    parts: dict[int, int]
    earliest: int


class StreamWriter(DataSourceStreamArrowWriter):
    """Stages each partition on an executor, merges all of them on the driver."""

    def __init__(self, options: Options) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        """Stage one partition, each chunk as a part; a later one has a higher number."""
        options, first_part = self._options, secrets.randbits(62)
        app, batch = _running_batch()
        app = options.txn_app_id or app
        stage = StageId(_writer_number(options.kind, app), batch)
        parts, earliest = dict[int, int](), LATEST
        with OpenBulk(options) as bulk:
            found = chunks(iterator, options.batch_size or CHUNK_ROWS)
            for part, chunk in enumerate(found, first_part):
                offered = prepared(chunk, options)
                bulk.run(partial(bulk.store.stage, offered, stage, part))
                parts[part] = offered.num_rows
                earliest = min(earliest, pc.min(offered["due_at"]).as_py())
        return Staged(app, stage, parts, earliest)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803 - Spark's signature
        """Merge what is staged, unless that was done before."""
        staged = [message for message in messages if isinstance(message, Staged) and message.parts]
        if not staged:
            return
        app, stage = staged[0].app, staged[0].stage
        parts = _parts(staged)
        with OpenBulk(self._options) as bulk:
            counts = bulk.run(partial(bulk.store.merge, app, stage, parts, bulk.now()))
            if counts is None:
                logger.warning(
                    "batch %d of %r is skipped, as it was offered before: right after a crash; but "
                    "a stream that starts anew needs a txnAppId of its own",
                    stage.batch,
                    app,
                )
            elif counts.created or counts.updated:
                bulk.announce(min(message.earliest for message in staged))

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803 - Spark's signature
        """Throw away what was staged."""
        staged = [message for message in messages if isinstance(message, Staged)]
        if staged:
            with OpenBulk(self._options) as bulk:
                bulk.run(partial(bulk.store.discard, staged[0].stage, list(_parts(staged))))


def _parts(staged: Sequence[Staged]) -> dict[int, int]:
    """Return the parts of all partitions."""
    return {part: rows for message in staged for part, rows in message.parts.items()}


def _running_batch() -> tuple[str, int]:
    """Return which query's which batch this partition belongs to."""
    context = TaskContext.get()
    query = context and context.getLocalProperty(_QUERY_ID)
    batch = context and context.getLocalProperty(_BATCH_ID)
    if not query or not batch:
        raise RuntimeError(
            "Spark does not tell which micro-batch this is: use micro-batch triggers"
        )
    return query, int(batch)


def _writer_number(kind: str, app: str) -> int:
    """Return the number that stands for a writer in the stage."""
    digest = blake2b(f"{kind}\n{app}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) >> 1
