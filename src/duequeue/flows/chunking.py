"""Cuts records into transactions of a bounded size."""

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

CHUNK_MESSAGES = 1000
CHUNK_BYTES = 8 * 1024 * 1024


class HasPayload(Protocol):
    """Something whose payload is stored."""

    @property
    def payload(self) -> bytes:
        """The encoded payload."""


R = TypeVar("R", bound=HasPayload)


def chunks(records: Iterable[R]) -> Iterator[list[R]]:
    """Cut records into chunks; only a single one may be larger than a chunk."""
    chunk: list[R] = []
    size = 0
    for record in records:
        if len(chunk) == CHUNK_MESSAGES or (chunk and size + len(record.payload) > CHUNK_BYTES):
            yield chunk
            chunk, size = [], 0
        chunk.append(record)
        size += len(record.payload)
    if chunk:
        yield chunk
