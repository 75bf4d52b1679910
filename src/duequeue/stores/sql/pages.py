"""Pages of messages, as columns: many at a time where they are small, few where they are large."""

from collections.abc import Generator, Iterable
from typing import Any

from duequeue.bulk import PAGE_BYTES, PAYLOAD, MessageColumns, MessageRow

# So many are fetched before their size is known: a page may be larger by that much.
CHUNK_ROWS = 64


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
        columns = list(zip(*chunk, strict=True))
        page = page or [[] for _ in columns]
        for column, more in zip(page, columns, strict=True):
            column.extend(more)
        size += sum(map(len, columns[PAYLOAD])) if with_payload else 0
        if len(page[0]) + len(chunk) > rows or size >= PAGE_BYTES:
            yield page
            page, size = [], 0
    if page:
        yield page
