"""What lies in the database under test."""

import sqlite3
from contextlib import closing
from typing import Any

import psycopg

from duequeue import Delivery, Queue
from tests.fixtures.mariadb import connected

# One, once no snapshot is kept in this database any more.
LET_GO = """
    SELECT 1 - count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'duequeue snapshot'
"""


def drained(queue: Queue[Any]) -> list[Delivery[Any]]:
    """Lease all that is due. What another process offered may lie behind what was polled before."""
    found: list[Delivery[Any]] = []
    while more := queue.try_poll_many(10_000):
        found += more
    return found


def ask(url: str, query: str) -> list[tuple[Any, ...]]:
    """Return the rows of a query, in which `"key"` has double quotes."""
    if url.startswith("sqlite:"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            return connection.execute(query).fetchall()
    if url.startswith("mariadb:"):
        with connected(url) as cursor:
            cursor.execute("SET SESSION sql_mode = 'ANSI_QUOTES'")
            cursor.execute(query)
            return [tuple(map(_as_text, row)) for row in cursor.fetchall()]
    with psycopg.connect(url) as server:
        return server.execute(query.encode()).fetchall()


def change(url: str, statement: str) -> None:
    """Execute a statement, which the three databases all know."""
    if url.startswith("sqlite:"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection, connection:
            connection.execute(statement)
    elif url.startswith("mariadb:"):
        with connected(url) as cursor:
            cursor.execute(statement)
    else:
        with psycopg.connect(url) as server:
            server.execute(statement.encode())


def count(url: str, table: str) -> int:
    """Count the rows of a table."""
    return int(ask(url, f"SELECT count(*) FROM {table}")[0][0])  # noqa: S608 - ours


def _as_text(value: Any) -> Any:
    """Return text as such, which MariaDB stores as bytes."""
    return value.decode() if isinstance(value, bytes) else value
