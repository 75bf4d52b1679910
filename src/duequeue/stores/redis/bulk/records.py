"""Arrow batches as the records that scripts take."""

from collections.abc import Iterator
from itertools import chain

import pyarrow as pa

from duequeue.port.store import Record
from duequeue.stores.redis.calling import MOST_AT_ONCE, record_words
from duequeue.stores.redis.commands import Word

CHUNK_BYTES = 8 * 1024 * 1024


def records_of(rows: pa.RecordBatch) -> Iterator[list[Record]]:
    """Return the rows of a batch in chunks that one script takes."""
    names = ("key", "payload", "due_at", "headers", "replace")
    columns = [rows[name].to_pylist() for name in names]
    chunk: list[Record] = []
    size = 0
    for fields in zip(*columns, strict=True):
        record = Record(*fields)
        size += len(record.payload)
        if len(chunk) == MOST_AT_ONCE or (chunk and size > CHUNK_BYTES):
            yield chunk
            chunk, size = [], len(record.payload)
        chunk.append(record)
    if chunk:
        yield chunk


def words_of(records: list[Record]) -> Iterator[Word]:
    """Return records as a script takes them."""
    return chain.from_iterable(map(record_words, records))
