"""What a server answers to a statement, read in one way from every driver."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from duequeue.stores.sql.commands import Row

# The types of columns that hold text or bytes, by the numbers of the protocol.
_TEXT_TYPES = frozenset({15, 249, 250, 251, 252, 253, 254})
# This column holds the bytes of a caller. All other bytes are text in UTF-8.
_BYTES = "payload"
# The column of ids that are joined by commas. It is turned into one row for each id.
JOINED_IDS = "joined_ids"


class Reply(NamedTuple):
    """The rows of a statement, or None if it returns none, and how many rows it touched.

    `info` is what the server says about an INSERT, which is only known on our own connections.
    """

    rows: list[Row] | None
    touched: int
    columns: Sequence[str] = ()
    info: bytes = b""


def reply_of_result(result: Any) -> Reply:
    """Return a reply from a driver's result."""
    info = result.message
    return reply_of(result.description, result.rows, result.affected_rows, info or b"")


def reply_of(
    description: Sequence[Any] | None, rows: Any, touched: int, info: bytes = b""
) -> Reply:
    """Return a reply from what a driver's cursor says."""
    if not description:
        return Reply(None, touched, (), info)
    columns = [column[0] for column in description]
    if columns == [JOINED_IDS]:
        return Reply([(int(number),) for number in _texts(rows[0][0])], touched, ["id"])
    texts = [
        number
        for number, column in enumerate(description)
        if column[1] in _TEXT_TYPES and column[0] != _BYTES
    ]
    if not texts or not rows:
        return Reply(list(rows), touched, columns)
    return Reply([_decoded(row, texts) for row in rows], touched, columns)


def _texts(joined: bytes | str | None) -> list[str]:
    text = joined.decode() if isinstance(joined, bytes) else joined
    return text.split(",") if text else []


def _decoded(row: Row, texts: Sequence[int]) -> Row:
    values = list(row)
    for number in texts:
        if isinstance(values[number], bytes):
            values[number] = values[number].decode()
    return tuple(values)
