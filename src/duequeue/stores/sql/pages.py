"""Pages of messages: many at a time where they are small, few where they are large."""

from collections.abc import Generator, Iterable

from duequeue.bulk import PAGE_BYTES, PAYLOAD, MessageRow

# As many as are fetched before their size is looked at; larger messages have up to 8 MiB each.
CHUNK_ROWS = 64


def paged(chunks: Iterable[list[MessageRow]], rows: int) -> Generator[list[MessageRow], None, None]:
    """Join chunks to pages of about so many rows, or of `PAGE_BYTES` where that is less."""
    page: list[MessageRow] = []
    size = 0
    for chunk in chunks:
        page += chunk
        size += sum([len(row[PAYLOAD] or b"") for row in chunk])
        if len(page) >= rows or size >= PAGE_BYTES:
            yield page
            page, size = [], 0
    if page:
        yield page
