"""Reads SQLite's write-ahead log, which tells what was committed and how many pages it took."""

from pathlib import Path
from struct import unpack
from typing import NamedTuple

FILE_HEADER = 32
FRAME_HEADER = 24


class Log(NamedTuple):
    """How much was ever written to a log that has not been wound back."""

    transactions: int
    pages: int


def read_log(database: Path) -> Log:
    """Count the frames, and those that end a transaction."""
    data = database.with_name(f"{database.name}-wal").read_bytes()
    _, _, page_size = unpack(">III", data[:12])
    starts = range(FILE_HEADER, len(data), FRAME_HEADER + page_size)
    # A frame that ends a transaction says how large the database is then; the others say nothing.
    sizes = [unpack(">I", data[start + 4 : start + 8])[0] for start in starts]
    return Log(sum(size > 0 for size in sizes), len(sizes))
