"""A report reads a database with many queues over a few connections."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from pyspark.sql import SparkSession

from duequeue import ManualClock, Queue
from duequeue.pipeline import report
from tests.fixtures.postgres import PostgresServer
from tests.pipeline.settling import settle
from tests.servers.logins import owned_database

QUEUES = 1000
MOST_CONNECTIONS = 4
# The kinds are added in one statement, because opening a thousand queues takes half a minute.
ADD_QUEUES = """
    INSERT INTO duequeue_kind (kind) SELECT concat('queue-', n, '|json')
    FROM generate_series(1, %(queues)s) AS n
"""
ADD_MESSAGES = """
    INSERT INTO duequeue_message (kind_id, key, payload, due_at, asked_at, created_at)
    SELECT id, 'a', '1', %(due_at)s, %(due_at)s, 0 FROM duequeue_kind WHERE kind LIKE 'queue-%%'
"""
OTHERS = """
    SELECT FROM pg_stat_activity WHERE usename = current_user AND pid != pg_backend_pid()
"""
SCANS = """
    SELECT coalesce(seq_scan, 0) + coalesce(idx_scan, 0) FROM pg_stat_user_tables
    WHERE relname = 'duequeue_message'
"""


@pytest.fixture
def limited_url(postgres_server: PostgresServer) -> Iterator[str]:
    """A database whose login may have at most four connections."""
    with owned_database(postgres_server) as (logins, url):
        Queue.open(url, "orders", history=True).close()
        with psycopg.connect(logins.superuser, autocommit=True) as connection:
            user = psycopg.conninfo.conninfo_to_dict(url)["user"]
            limit = sql.SQL("ALTER ROLE {} CONNECTION LIMIT {}")
            connection.execute(limit.format(sql.Identifier(str(user)), MOST_CONNECTIONS))
        yield url


def test_a_thousand_queues_take_four_connections_and_one_scan(
    spark: SparkSession, limited_url: str, tmp_path: Path, clock: ManualClock
) -> None:
    with Queue.open(limited_url, "orders", clock=clock, history=True) as queue:
        settle(queue, "a", "b")
    due_at = round((clock.now() + timedelta(hours=1)).timestamp() * 1000)
    with psycopg.connect(limited_url) as connection:
        connection.execute(ADD_QUEUES, {"queues": QUEUES})
        connection.execute(ADD_MESSAGES, {"due_at": due_at})
    before = scans(limited_url)
    done = report(spark, folder=tmp_path, url=limited_url, clock=clock)
    assert scans(limited_url) - before == 1
    assert done.settled == 2
    forecast = (tmp_path / "tables" / "forecast.csv").read_text().splitlines()
    assert len(forecast) == 1 + QUEUES


def scans(url: str) -> int:
    """Count how often the table of messages was scanned, once every other session is over."""
    with psycopg.connect(url) as connection:
        while connection.execute(OTHERS).fetchone():
            connection.execute("SELECT pg_stat_clear_snapshot(), pg_sleep(0.01)")
        connection.execute("SELECT pg_stat_clear_snapshot()")
        (found,) = connection.execute(SCANS).fetchall()
        return int(found[0])
