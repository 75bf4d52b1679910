"""Claims beside other people's row locks: they wait for none, and overlook nothing."""

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

from duequeue import ManualClock, OfferOutcome, Queue
from duequeue.contract.fixtures import START
from duequeue.contract.phrases import PATIENCE, in_background, keys_of
from tests.race.watching import until_one

# Rows are checked against the policy after the statement's snapshot was taken and before they
# are locked: a consumer that waits here is stopped between the two.
STOP_CONSUMERS_BETWEEN_SNAPSHOT_AND_LOCK = """
    CREATE FUNCTION wait_for_the_gate() RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
    BEGIN
        PERFORM pg_advisory_xact_lock_shared(7);
        RETURN true;
    END $$;
    ALTER TABLE duequeue_message ENABLE ROW LEVEL SECURITY;
    CREATE POLICY gate ON duequeue_message USING (wait_for_the_gate()) WITH CHECK (true);
    GRANT ALL ON ALL TABLES IN SCHEMA public TO gated_consumer;
"""


@pytest.fixture
def connection(postgres_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        yield connection


@contextmanager
def gated_url(connection: psycopg.Connection, url: str) -> Iterator[str]:
    """The database as an ordinary user sees it: superusers pass all policies."""
    connection.execute("CREATE ROLE gated_consumer LOGIN PASSWORD 'gated'")
    connection.execute(STOP_CONSUMERS_BETWEEN_SNAPSHOT_AND_LOCK)
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    try:
        yield urlunsplit(parts._replace(netloc=f"gated_consumer:gated@{host}"))
    finally:
        connection.execute("DROP OWNED BY gated_consumer; DROP ROLE gated_consumer")


def test_a_claim_finds_what_an_update_touches_between_its_snapshot_and_its_lock(
    postgres_url: str, connection: psycopg.Connection, clock: ManualClock
) -> None:
    with Queue.open(postgres_url, "orders", clock=clock) as producer:
        producer.offer("a", 1, START)
        producer.offer("b", 1, START)
        with (
            gated_url(connection, postgres_url) as url,
            Queue.open(url, "orders", clock=clock) as consumer,
        ):
            with psycopg.connect(postgres_url) as gate_keeper:
                gate_keeper.execute("SELECT pg_advisory_xact_lock(7)")
                polling = in_background(consumer.try_poll)
                until_one(
                    connection,
                    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted",
                )
                assert producer.offer("a", 2, START) is OfferOutcome.UPDATED
            delivery = polling.result(PATIENCE)
            assert delivery is not None, "two messages were due, and none was found"
            assert (delivery.key, delivery.payload) in {("a", 2), ("b", 1)}


def test_a_claim_passes_by_locked_rows(
    postgres_url: str, connection: psycopg.Connection, clock: ManualClock
) -> None:
    with Queue.open(postgres_url, "orders", clock=clock) as queue:
        for key in "abc":
            queue.offer(key, 1, START)
        with connection.transaction():
            connection.execute("SELECT 1 FROM duequeue_message WHERE key = 'b' FOR UPDATE")
            assert keys_of(queue.try_poll_many(10)) == ["a", "c"]
            assert queue.try_poll() is None
        assert keys_of(queue.try_poll_many(10)) == ["b"]
