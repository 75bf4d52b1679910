"""Queries that do not wait for each other's answers, in one transaction."""

import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import psycopg
from psycopg.rows import TupleRow

from duequeue.stores.sql.commands import BEGIN, QueryEach
from duequeue.stores.sql.postgres.connections import cursor_on
from duequeue.stores.sql.postgres.errors import interrupt_behind
from duequeue.stores.sql.postgres.statements import statement


def in_turn(
    perform: Callable[..., object],
    connection: psycopg.Connection[Any],
    kept: psycopg.Cursor[TupleRow] | None,
    ends_at: float | None,
    queries: Sequence[QueryEach],
) -> list[Any]:
    """Send all queries before the first reply; until the end, they are one transaction."""
    if kept is None:  # an interrupt would leave a caller's connection inside the pipeline
        return [perform(connection, None, ends_at, each) for each in queries]
    cursors: list[psycopg.Cursor[TupleRow]] = []
    handled = sys.exception()
    try:
        with connection.pipeline():
            for command in queries:
                cursors.append(cursor_on(connection))
                query, parameters = statement(command, ends_at)
                cursors[-1].execute(query, parameters, binary=True)
    except psycopg.Error as error:
        interrupt = interrupt_behind(error, handled)
        if interrupt is None:
            # The driver may note statements as prepared that the server never prepared, and each
            # later call on the connection would fail.
            connection.close()
            raise
        raise interrupt from None
    return [cursor.fetchall() if cursor.rownumber is not None else [] for cursor in cursors]


async def in_turn_async(
    perform: Callable[..., Awaitable[object]],
    connection: psycopg.AsyncConnection[Any],
    kept: psycopg.AsyncCursor[TupleRow] | None,
    ends_at: float | None,
    queries: Sequence[QueryEach],
) -> list[Any]:
    """Send one query after another, because the driver leaves a cancelled pipeline in disorder."""
    await perform(connection, kept, ends_at, BEGIN)
    return [await perform(connection, kept, ends_at, each) for each in queries]
