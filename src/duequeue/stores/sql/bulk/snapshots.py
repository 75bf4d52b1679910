"""Snapshots: the parts in which they are read, and pages of messages as columns."""

from collections.abc import Generator, Iterable
from typing import Any

from duequeue.port.bulk import PAGE_BYTES, PAYLOAD, MessageColumns, MessageRow, SnapshotPart
from duequeue.port.store import Steps
from duequeue.stores.sql.commands import Query, Row


def measured() -> Steps[range]:
    """Return the range of ids or pages that the table has."""
    rows: list[Row] = yield Query("measure_messages")
    return range(*rows[0])


def cut(table: range, end: int, parts: int) -> list[SnapshotPart]:
    """Cut a range into at most `parts` parts of similar length.

    The last part extends to `end`, because there may be more by the time it is read.
    """
    many = max(1, min(parts, len(table)))
    bounds = [*(table.start + len(table) * number // many for number in range(many)), end]
    return [
        SnapshotPart(number, bounds[number], bounds[number + 1], None) for number in range(many)
    ]


# Rows are fetched in chunks of this size before their size is known, so a page may overshoot by one
# chunk. Without payloads, larger chunks save about 10 % of the client's time.
CHUNK_ROWS = 64
SMALL_CHUNK_ROWS = 1000


def paged(
    chunks: Iterable[list[MessageRow]], rows: int, *, with_payload: bool
) -> Generator[MessageColumns, None, None]:
    """Join chunks into pages of at most `rows` rows and about `PAGE_BYTES` of payloads.

    All chunks but the last have one length. Each chunk is turned into columns at once, while it is
    still in the processor's cache, which is faster than to convert a whole page.
    """
    page: list[list[Any]] = []
    size = 0
    for chunk in chunks:
        length = len(chunk)
        page = page or [[] for _ in chunk[0]]
        size += _join(page, chunk, with_payload=with_payload)
        chunk.clear()  # so that it does not take up memory while the next one is fetched
        if len(page[0]) + length > rows or size >= PAGE_BYTES:
            yield page
            page, size = [], 0
    if page:
        yield page


def _join(page: list[list[Any]], chunk: list[MessageRow], *, with_payload: bool) -> int:
    """Add a chunk to a page, and return the size of its payloads in bytes."""
    columns = list(zip(*chunk, strict=True))
    for column, more in zip(page, columns, strict=True):
        column.extend(more)
    return sum(map(len, columns[PAYLOAD])) if with_payload else 0
