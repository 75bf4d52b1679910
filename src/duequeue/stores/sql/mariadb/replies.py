"""What a server answers to a statement, read in one way from every driver."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from duequeue.stores.sql.commands import Row

# The types of columns that hold text or bytes, by the numbers of the protocol.
_TEXT_TYPES = frozenset({15, 249, 250, 251, 252, 253, 254})
# This column holds the bytes of a caller. All other bytes are text in UTF-8.
_BYTES = "payload"
# The column of many ids in a JSON array. It is turned into one row for each id.
IDS = "ids"


class ServerReply(NamedTuple):
    """The rows of a statement, or None if it returns none, and how many rows it touched.

    `info` is what the server says about an INSERT, which is only known on our own connections.
    """

    rows: list[Row] | None
    touched: int
    columns: Sequence[str] = ()
    info: bytes = b""

    def inserted_all(self) -> bool:
        """Return whether an INSERT met no duplicates.

        The server says something like `Records: 2  Duplicates: 0  Warnings: 0`, in any language.
        It says nothing about a single row. Rows that stay as they are do not count as duplicates.
        """
        numbers = [int(word) for word in self.info.split() if word.isdigit()]
        return numbers[:2] == [self.touched, 0] if numbers else self.touched == 1


def reply_of_result(result: Any) -> ServerReply:
    """Return a reply from a driver's result."""
    if not result.description:
        return ServerReply(None, result.affected_rows, (), result.message or b"")
    return reply_of(result.description, result.rows, result.affected_rows)


def reply_of(description: Sequence[Any] | None, rows: Any, touched: int) -> ServerReply:
    """Return a reply from what a driver's cursor says."""
    if not description:
        return ServerReply(None, touched)
    columns, texts = list[str](), list[int]()
    for number, (name, kind, *_) in enumerate(description):
        columns.append(name)
        if kind in _TEXT_TYPES and name != _BYTES:
            texts.append(number)
    if columns == [IDS]:
        return ServerReply(
            [(number,) for number in json.loads(rows[0][0] or "[]")], touched, ["id"]
        )
    return ServerReply(_decoded(rows, texts) if texts else list(rows), touched, columns)


def _decoded(rows: Sequence[Row], texts: Sequence[int]) -> list[Row]:
    found = []
    for row in rows:
        values = list(row)
        for number in texts:
            if isinstance(values[number], bytes):
                values[number] = values[number].decode()
        found.append(tuple(values))
    return found
