"""Snapshots: the parts they are read in, and pages of messages, as columns."""

from collections.abc import Generator, Iterable
from typing import Any

from duequeue.port.bulk import PAGE_BYTES, PAYLOAD, MessageColumns, MessageRow, SnapshotPart


def cut(first: int, last: int, end: int, parts: int, snapshot: str | None) -> list[SnapshotPart]:
    """Cut from `first` to before `last` into at most so many parts of about the same length.

    The last part goes on to `end`: by the time it is read, there may be more.
    """
    many = max(1, min(parts, last - first))
    bounds = [*(first + (last - first) * number // many for number in range(many)), end]
    return [
        SnapshotPart(number, bounds[number], bounds[number + 1], snapshot) for number in range(many)
    ]


# So many are fetched before their size is known: a page may be larger by that much. Where all are
# known to be small, more at a time take a tenth less of the client.
CHUNK_ROWS = 64
SMALL_CHUNK_ROWS = 1000


def paged(
    chunks: Iterable[list[MessageRow]], rows: int, *, with_payload: bool
) -> Generator[MessageColumns, None, None]:
    """Join chunks, of one length but for the last, to pages of at most so many rows.

    Or of about `PAGE_BYTES` of payloads. A chunk is turned into columns while the processor has
    it at hand: that is faster than all at once.
    """
    page: list[list[Any]] = []
    size = 0
    for chunk in chunks:
        length = len(chunk)
        page = page or [[] for _ in chunk[0]]
        size += _join(page, chunk, with_payload=with_payload)
        chunk.clear()  # not to be held while the next one is fetched
        if len(page[0]) + length > rows or size >= PAGE_BYTES:
            yield page
            page, size = [], 0
    if page:
        yield page


def _join(page: list[list[Any]], chunk: list[MessageRow], *, with_payload: bool) -> int:
    """Add a chunk to a page, and return how many bytes its payloads have."""
    columns = list(zip(*chunk, strict=True))
    for column, more in zip(page, columns, strict=True):
        column.extend(more)
    return sum(map(len, columns[PAYLOAD])) if with_payload else 0
