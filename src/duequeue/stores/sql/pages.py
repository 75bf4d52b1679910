"""Pages of messages: many at a time where they are small, few where they are large."""

from collections.abc import Generator, Iterable

from duequeue.bulk import PAGE_BYTES, PAYLOAD, MessageRow

# So many are fetched before their size is known: a page may be larger by that much.
CHUNK_ROWS = 64


def paged(chunks: Iterable[list[MessageRow]], rows: int) -> Generator[list[MessageRow], None, None]:
    """Join chunks to pages of so many rows, or of about `PAGE_BYTES` of payloads."""
    page: list[MessageRow] = []
    size = 0
    for chunk in chunks:
        page += chunk
        size += sum([len(row[PAYLOAD] or b"") for row in chunk])
        while len(page) >= rows or size >= PAGE_BYTES:
            yield page[:rows]
            page, size = page[rows:], 0
    if page:
        yield page
