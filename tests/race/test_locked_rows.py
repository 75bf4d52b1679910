"""Rows that somebody else has locked: offers wait a while, and nobody loses a lease over it."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from time import monotonic

import psycopg
import pytest

from duequeue import ManualClock, OfferOutcome, RetryPolicy, StoreUnavailable
from duequeue.contract.faces import Face, LoopThread
from duequeue.contract.phrases import (
    CONSUMER_LEASE,
    DAY,
    PATIENCE,
    SECOND,
    claim,
    in_background,
)
from duequeue.contract.stage import until, until_leased
from duequeue.stores.sql.postgres import settings
from duequeue.stores.sql.postgres.statements import SHARE_FOR_LOCKS
from tests.race.holding import holding
from tests.race.watching import WAITING_FOR_A_LOCK, until_one

UPDATED = OfferOutcome.UPDATED
KEYS = [f"locked-{number}" for number in range(12)]
FOR_OFFERS = 9  # connections of the pool, which has ten
# How many seconds an offer waits for a locked row in one try.
ONE_TRY = SHARE_FOR_LOCKS * RetryPolicy().try_seconds


@contextmanager
def locked_rows(url: str) -> Iterator[psycopg.Connection]:
    """Somebody else's transaction, which holds every row of these keys."""
    with psycopg.connect(url) as connection:
        connection.execute("SELECT 1 FROM duequeue_message WHERE key LIKE 'locked%' FOR UPDATE")
        yield connection
        connection.rollback()


@pytest.fixture
def watch(ready_database: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(ready_database, autocommit=True) as connection:
        yield connection


def count_waiting(watch: psycopg.Connection) -> int:
    ((count,),) = watch.execute(WAITING_FOR_A_LOCK).fetchall()
    return int(count)


def test_consumers_go_on_while_offers_use_up_the_connections(
    ready_database: str,
    watch: psycopg.Connection,
    face: Face,
    loop_thread: LoopThread,
    clock: ManualClock,
) -> None:
    with (
        face.open(ready_database, "orders", clock=clock) as queue,
        face.open(ready_database, "orders", clock=clock) as another_worker,
        face.open(f"{ready_database}?pool_size=2", "orders", clock=clock) as observer,
    ):
        for key in KEYS:
            queue.offer(key, 1, DAY)
        with holding(queue, face, loop_thread) as (consumer, handler):
            with locked_rows(ready_database):
                began = monotonic()
                offers = [in_background(partial(queue.offer, key, 2, DAY)) for key in KEYS]
                until(lambda: count_waiting(watch) == FOR_OFFERS)
                for _ in range(3):
                    clock.advance(CONSUMER_LEASE / 2)
                    until_leased(observer, "held", clock.now() + CONSUMER_LEASE)
                    assert another_worker.try_poll() is None
                assert monotonic() - began < ONE_TRY  # no offer has made way for the others yet
            assert [offer.result(PATIENCE) for offer in offers] == [UPDATED] * len(KEYS)
            handler.may_end.set()
            consumer.stop()
        assert handler.kept_leases == [True]
        assert not queue.contains("held")


def test_an_offer_says_that_it_waited_for_somebody_else(ready_database: str, face: Face) -> None:
    with face.open(ready_database, "orders", retry=RetryPolicy(budget=SECOND)) as queue:
        queue.offer("locked", 1)
        began = monotonic()
        refused = pytest.raises(StoreUnavailable, match="another transaction has locked")
        with locked_rows(ready_database), refused:
            queue.offer("locked", 2)
        assert 1.5 < monotonic() - began < PATIENCE / 5  # most of a try of two seconds


def test_a_lock_timeout_of_the_users_own_is_respected(ready_database: str, face: Face) -> None:
    url = f"{ready_database}?options=-c%20lock_timeout%3D10ms"
    with face.open(url, "orders", retry=RetryPolicy.never()) as queue:
        queue.offer("locked", 1)
        began = monotonic()
        with locked_rows(ready_database), pytest.raises(StoreUnavailable, match="lock timeout"):
            queue.offer("locked", 2)
        assert monotonic() - began < ONE_TRY


def test_an_ack_does_not_wait_for_a_lock_for_ever(
    ready_database: str, face: Face, monkeypatch: pytest.MonkeyPatch, watch: psycopg.Connection
) -> None:
    monkeypatch.setattr(settings, "LOCK_TIMEOUT", "100ms")
    with face.open(ready_database, "orders", retry=RetryPolicy.never()) as queue:
        queue.offer("locked", 1)
        delivery = claim(queue)
        refused = pytest.raises(StoreUnavailable, match="another transaction has locked")
        with locked_rows(ready_database):
            with refused:
                delivery.ack()
            assert count_waiting(watch) == 0
        assert delivery.ack()


CANCEL = """
    SELECT pg_cancel_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'
"""


def test_a_cancelled_statement_is_tried_again(
    ready_database: str, watch: psycopg.Connection, face: Face
) -> None:
    with face.open(ready_database, "orders") as queue:
        queue.offer("locked", 1)
        with locked_rows(ready_database):
            offering = in_background(partial(queue.offer, "locked", 2))
            until_one(watch, WAITING_FOR_A_LOCK)
            watch.execute(CANCEL)
        assert offering.result(PATIENCE) is UPDATED


def test_a_statement_timeout_is_tried_again(ready_database: str, face: Face) -> None:
    url = f"{ready_database}?options=-c%20statement_timeout%3D100ms"
    with face.open(url, "orders") as queue:
        queue.offer("locked", 1)
        with locked_rows(ready_database):
            offering = in_background(partial(queue.offer, "locked", 2))
            with pytest.raises(TimeoutError):
                offering.result(0.3)
        assert offering.result(PATIENCE) is UPDATED
