"""`df.writeStream.format("duequeue")` offers each micro-batch exactly once.

After a crash Spark runs a batch again, under the same number. Therefore executors only stage their
rows, and the driver merges them and records the number in one transaction. A batch whose number is
recorded is not merged again, even if its messages were consumed in the meantime. A digest of the
rows tells it from the batch of another stream that has the same name.
"""

import logging
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from duequeue.bulk.port import UNKNOWN, StageId, Written
from duequeue.instants import LATEST
from duequeue.spark.open_bulk import OpenBulk
from duequeue.spark.options import Options
from duequeue.spark.row_digest import MOST, digest_of
from duequeue.spark.write_places import open_for_writing
from duequeue.spark.written_rows import CHUNK_ROWS, chunks, prepared

logger = logging.getLogger("duequeue.spark")

_QUERY_ID = "sql.streaming.queryId"
_BATCH_ID = "streaming.sql.batchId"


@dataclass
class Staged(WriterCommitMessage):
    """What one partition has staged: the number of rows in each part.

    The driver learns the name of the query only from this message. Doubles are rows that were not
    staged, because a chunk has each key once.
    """

    app: str
    stage: StageId
    parts: dict[int, int]
    earliest: int
    doubles: int = 0
    written: Written = UNKNOWN


class StreamWriter(DataSourceStreamArrowWriter):
    """Stages each partition on an executor, and merges all of them on the driver."""

    def __init__(self, options: Options) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        """Stage one partition, each chunk as a part; later parts have higher numbers."""
        options, first_part = self._options, secrets.randbits(62)
        query, batch = _running_batch()
        app = options.txn_app_id or query
        stage = StageId(_writer_number(options.kind, app), batch)
        parts, earliest = dict[int, int](), LATEST
        found = (
            (chunk.num_rows, prepared(chunk, options))
            for chunk in chunks(iterator, options.batch_size or CHUNK_ROWS)
        )
        first = next(found, None)
        if first is None:  # an empty partition needs no connection
            return Staged(app, stage, parts, earliest)
        doubles, digest = 0, 0
        with open_for_writing(options) as bulk:
            for part, (given, offered) in enumerate(chain([first], found), first_part):
                bulk.run(partial(bulk.store.stage, offered, stage, part))
                parts[part] = offered.num_rows
                digest += digest_of(offered)
                doubles += given - offered.num_rows
                earliest = min(earliest, pc.min(offered["due_at"]).as_py())
        return Staged(app, stage, parts, earliest, doubles, Written(query, digest))

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803 - Spark's signature
        """Merge the staged rows, unless this batch was merged before."""
        staged = [message for message in messages if isinstance(message, Staged) and message.parts]
        if not staged:
            return
        app, stage = staged[0].app, staged[0].stage
        parts, doubles = _parts(staged), sum(message.doubles for message in staged)
        with OpenBulk(self._options) as bulk:
            merge = partial(bulk.store.merge, app, stage, parts, bulk.now(), doubles)
            counts = bulk.run(partial(merge, _written(staged)))
            if counts is None:
                logger.warning(
                    "skipping batch %d of %r, which was already merged. This is expected after a "
                    "restart; if this is a new stream, give it its own txnAppId",
                    stage.batch,
                    app,
                )
                return
            logger.info("batch %d of %r: %s", stage.batch, app, counts)
            if counts.created or counts.updated:
                bulk.announce(min(message.earliest for message in staged))

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803 - Spark's signature
        """Discard the staged rows."""
        staged = [message for message in messages if isinstance(message, Staged)]
        if staged:
            with OpenBulk(self._options) as bulk:
                bulk.run(partial(bulk.store.discard, staged[0].stage, list(_parts(staged))))


def _parts(staged: Sequence[Staged]) -> dict[int, int]:
    """Return the parts of all partitions."""
    return {part: rows for message in staged for part, rows in message.parts.items()}


def _written(staged: Sequence[Staged]) -> Written:
    """Return the query, and the digest of all its rows."""
    digests = [message.written.digest or 0 for message in staged]
    return staged[0].written._replace(digest=sum(digests) % MOST)


def _running_batch() -> tuple[str, int]:
    """Return the query and the number of the batch that this partition belongs to."""
    context = TaskContext.get()
    query = context and context.getLocalProperty(_QUERY_ID)
    batch = context and context.getLocalProperty(_BATCH_ID)
    if not query or not batch:
        raise RuntimeError(
            "Spark does not say which micro-batch this is: use a micro-batch trigger"
        )
    return query, int(batch)


def _writer_number(kind: str, app: str) -> int:
    """Return the number that stands for a writer in the staging table."""
    digest = blake2b(f"{kind}\n{app}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) >> 1
