"""A claim is a HOT update: it touches no index, and leaves no work for a vacuum there."""

import psycopg
import pytest

from duequeue import ManualClock, Message, Queue
from duequeue.contract.phrases import DEFAULT_LEASE

UPDATES = """
    SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'duequeue_message'
"""


@pytest.mark.parametrize("size", [20, 150])
@pytest.mark.parametrize("history", [False, True])
def test_claims_are_hot(postgres_url: str, clock: ManualClock, size: int, history: bool) -> None:
    with (
        Queue.open(postgres_url, "orders", clock=clock, history=history) as queue,
        psycopg.connect(postgres_url) as connection,
    ):
        queue.offer_batch([Message(f"order-{number:05}", "x" * size) for number in range(3000)])
        within = queue.within(connection)
        for _ in range(30):
            assert len(within.try_poll_many(100)) == 100
            connection.commit()
        assert updates(connection) == (3000, 3000)


def test_redeliveries_are_hot(postgres_url: str, clock: ManualClock) -> None:
    with (
        Queue.open(postgres_url, "orders", clock=clock) as queue,
        psycopg.connect(postgres_url) as connection,
    ):
        queue.offer_batch([Message(f"order-{number:05}", "x" * 150) for number in range(1000)])
        within = queue.within(connection)
        for _ in range(3):
            for _ in range(10):
                assert len(within.try_poll_many(100)) == 100
                connection.commit()
            clock.advance(DEFAULT_LEASE)
        assert updates(connection) == (3000, 3000)


def updates(connection: psycopg.Connection) -> tuple[int, int] | None:
    """How many rows this connection has updated, and how many of them without an index."""
    connection.execute("SELECT pg_stat_force_next_flush()")
    connection.commit()
    found: tuple[int, int] | None = connection.execute(UPDATES).fetchone()
    return found
