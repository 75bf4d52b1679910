"""Waiting for what a database shows of others, without sleeping."""

from time import monotonic

import psycopg

from tests.race.together import PATIENCE


def until_one(connection: psycopg.Connection, query: str) -> None:
    """Ask until the query counts one."""
    gives_up_at = monotonic() + PATIENCE
    while connection.execute(query).fetchone() != (1,):
        assert monotonic() < gives_up_at, f"still not one: {query}"
