"""Waiting for what a database shows of others, without sleeping."""

import asyncio
from time import monotonic

import psycopg

from tests.race.together import PATIENCE

WAITING_FOR_A_LOCK = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'duequeue'
        AND wait_event_type = 'Lock'
"""
LEFT_IN_TRANSACTION = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'duequeue'
        AND state LIKE 'idle in transaction%'
"""


def until_one(connection: psycopg.Connection, query: str) -> None:
    """Ask until the query counts one."""
    gives_up_at = monotonic() + PATIENCE
    while connection.execute(query).fetchone() != (1,):
        assert monotonic() < gives_up_at, f"still not one: {query}"


async def until_one_async(connection: psycopg.Connection, query: str) -> None:
    """Ask until the query counts one, and let the event loop turn in between."""
    gives_up_at = monotonic() + PATIENCE
    while connection.execute(query).fetchone() != (1,):
        assert monotonic() < gives_up_at, f"still not one: {query}"
        await asyncio.sleep(0)
