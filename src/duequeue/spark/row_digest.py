"""A digest of rows that are offered, by which a batch is told from another one."""

from zlib import crc32

import pyarrow as pa

# Stores keep the digest as a signed number of 64 bits.
MOST = 2**63


def digest_of(rows: pa.RecordBatch) -> int:
    """Return the same number for the same rows in any order and division, if they are added up."""
    keys = rows["key"].cast(pa.binary()).to_pylist()
    each = map(crc32, keys, rows["due_at"].to_pylist())
    headers = rows["headers"]
    if headers.null_count < len(headers):
        each = map(crc32, headers.cast(pa.binary()).fill_null(b"").to_pylist(), each)
    return sum(map(crc32, rows["payload"].to_pylist(), each)) % MOST
