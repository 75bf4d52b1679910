"""The numbered files in which Spark logs the micro-batches of a streaming query."""

import json
from typing import Any

from duequeue.errors import DueQueueError

COMPACT = ".compact"
_VERSION = "v1"


def number_of(name: str) -> int:
    """Return the number of a batch's file, or -1 if it is another file."""
    number = name.removesuffix(COMPACT)
    return int(number) if number.isdecimal() else -1


def parsed(content: bytes) -> list[dict[str, Any]]:
    """Return the lines of a file; raise an error if it was not written to its end."""
    version, *lines = content.decode().splitlines() or [""]
    if version != _VERSION:
        raise DueQueueError(f"a log of Spark has the version {version!r} instead of {_VERSION}")
    return [json.loads(line) for line in lines]


def written(*lines: dict[str, Any]) -> bytes:
    """Return the content of a file with these lines."""
    return "\n".join([_VERSION, *map(json.dumps, lines)]).encode()
