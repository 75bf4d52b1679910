"""Arrow batches as statements, and the other commands of bulk operations."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from duequeue.stores.sql.bulk.commands import Load, QueryBatch
from duequeue.stores.sql.commands import BEGIN, QueryEach, Row
from duequeue.stores.sql.mariadb.bulk.steps import STEPS
from duequeue.stores.sql.mariadb.conversation import Conversation, Packets, command_name
from duequeue.stores.sql.mariadb.errors import DRIVER_ERRORS, number_of
from duequeue.stores.sql.mariadb.statements import MOST_AT_ONCE, literal

DUPLICATE_KEY = 1062
ROWS_AT_ONCE = 1000
# A byte takes at most two characters, and the numbers of a row take fewer than this together.
CHARACTERS_OF_NUMBERS = 250
SAVEPOINT = "SAVEPOINT loading"
# The rows of the stage are numbered, because the server wants every table to have a primary key.
NUMBERED = {"duequeue_stage": "position"}


class BulkConversation(Conversation):
    """A conversation that can load batches too."""

    def perform(self, command: Any) -> Packets[object]:
        """Carry out one command; see `Conversation.perform`."""
        if isinstance(command, Load):
            return (yield from self._load(command.table, command.rows))
        if isinstance(command, QueryBatch):
            return (yield from self._query_batch(command))
        if (name := command_name(command)) in STEPS:
            return (yield from self._perform_all(STEPS[name](**command.parameters)))
        return (yield from super().perform(command))

    def _load(self, table: str, rows: pa.RecordBatch) -> Packets[bool]:
        """Insert a batch; insert nothing, and return False, if one of its keys is there already."""
        if table in NUMBERED:
            numbers = pa.array(range(rows.num_rows), pa.int64())
            rows = rows.append_column(NUMBERED[table], numbers)
        yield from self.perform(BEGIN)
        try:
            yield from self._send([SAVEPOINT, *self._inserts(table, rows)])
        except DRIVER_ERRORS as error:
            if number_of(error) != DUPLICATE_KEY:
                raise
            yield from self._send([f"ROLLBACK TO {SAVEPOINT}"])
            return False
        return True

    def _query_batch(self, command: QueryBatch) -> Packets[list[Row]]:
        yield from self.perform(BEGIN)
        names, found = command.rows.schema.names, list[Row]()
        for rows in self._cut(command.rows, MOST_AT_ONCE):
            each = list(zip(*(column.to_pylist() for column in rows.columns), strict=True))
            query = QueryEach(command.name, command.parameters, names, each)
            found += yield from self._query_each(query)
        return found

    def _inserts(self, table: str, rows: pa.RecordBatch) -> Iterator[str]:
        names = ", ".join(f"`{name}`" for name in rows.schema.names)
        for some in self._cut(rows, ROWS_AT_ONCE):
            columns = [map(literal, column.to_pylist()) for column in some.columns]
            values = "), (".join(map(", ".join, zip(*columns, strict=True)))
            yield f"INSERT INTO {table} ({names}) VALUES ({values})"  # noqa: S608 - all of it is ours

    def _cut(self, rows: pa.RecordBatch, most: int) -> Iterator[pa.RecordBatch]:
        """Divide a batch so that each part fits into half a packet, unless it is a single row."""
        room = self._facts.most_bytes // 2
        first, size = 0, 0
        for number, characters in enumerate(_characters(rows)):
            if number > first and (number - first == most or size + characters > room):
                yield rows.slice(first, number - first)
                first, size = number, 0
            size += characters
        if rows.num_rows:
            yield rows.slice(first)


def _characters(rows: pa.RecordBatch) -> list[int]:
    """Return how long each row will be in a statement, at most."""
    total = pa.repeat(pa.scalar(CHARACTERS_OF_NUMBERS, pa.int64()), rows.num_rows)
    for column in rows.columns:
        if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
            lengths = pc.binary_length(column).cast(pa.int64()).fill_null(0)
            total = pc.add(total, pc.multiply(lengths, 2))
    found: list[int] = total.to_pylist()
    return found
