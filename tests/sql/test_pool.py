"""The connections that the queues of a process share."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any

import psycopg
import pytest

from duequeue import OfferOutcome, RetryPolicy, StoreUnavailable
from duequeue.contract.faces import Face
from duequeue.contract.phrases import DAY, PATIENCE, SECOND, claim, in_background
from duequeue.contract.stage import until
from duequeue.stores.sql.connections import pool as pool_module
from duequeue.stores.sql.postgres import settings
from tests.race.watching import WAITING_FOR_A_LOCK, until_one

CREATED = OfferOutcome.CREATED

CONNECTIONS = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'duequeue'
"""


@pytest.fixture
def watch(ready_database: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(ready_database, autocommit=True) as connection:
        yield connection


def count_connections(watch: psycopg.Connection) -> int:
    ((count,),) = watch.execute(CONNECTIONS).fetchall()
    return int(count)


def test_queues_share_connections_until_the_last_is_closed(
    ready_database: str, watch: psycopg.Connection, face: Face
) -> None:
    with face.open(ready_database, "orders") as orders:
        with face.open(ready_database, "bills") as bills:
            assert orders.offer("a", 1, DAY) is CREATED
            assert bills.offer("a", 1, DAY) is CREATED
            assert count_connections(watch) == 1
        assert orders.contains("a")
    until(lambda: count_connections(watch) == 0)
    with face.open(ready_database, "orders") as orders:
        assert orders.contains("a")


def test_another_size_is_another_pool(
    ready_database: str, watch: psycopg.Connection, face: Face
) -> None:
    small = f"{ready_database}?pool_size=1"
    with face.open(ready_database, "orders"), face.open(small, "orders"):
        assert count_connections(watch) == 2


@contextmanager
def busy(url: str, queue: Any, watch: psycopg.Connection) -> Iterator[None]:
    """The only connection that offers may use waits for somebody else's lock."""
    with psycopg.connect(url) as other:
        other.execute("SELECT 1 FROM duequeue_message WHERE key = 'locked' FOR UPDATE")
        offering = in_background(partial(queue.offer, "locked", 2, DAY))
        until_one(watch, WAITING_FOR_A_LOCK)
        yield
        other.rollback()
    offering.result(PATIENCE)


def test_even_the_smallest_pool_has_a_connection_for_leases(
    ready_database: str, watch: psycopg.Connection, face: Face
) -> None:
    url = f"{ready_database}?pool_size=1"
    with face.open(url, "orders") as queue:
        queue.offer("locked", 1, DAY)
        queue.offer("a", 1)
        delivery = claim(queue)
        with busy(ready_database, queue, watch):
            assert delivery.extend()
            assert delivery.ack()


def test_an_exhausted_pool_says_what_a_call_waited_for(
    ready_database: str, watch: psycopg.Connection, face: Face
) -> None:
    url = f"{ready_database}?pool_size=1"
    with (
        face.open(url, "orders") as patient,
        face.open(url, "orders", retry=RetryPolicy(budget=SECOND)) as queue,
    ):
        patient.offer("locked", 1, DAY)
        words = (
            r"waited 2(\.\d+)? s for a connection.*all 1 \(one more is kept for polling.*pool_size"
        )
        with busy(ready_database, patient, watch), pytest.raises(StoreUnavailable, match=words):
            queue.contains("a")


def test_connections_that_are_not_used_for_long_are_closed(
    ready_database: str, watch: psycopg.Connection, face: Face, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_module, "TIDY_EVERY", 0.0)
    with face.open(ready_database, "orders") as queue:
        queue.offer("locked", 1, DAY)
        with busy(ready_database, queue, watch):
            queue.contains("a")
        assert count_connections(watch) == 2
        monkeypatch.setattr(pool_module, "CLOSE_IDLE_AFTER", 0.0)
        queue.contains("a")
        until(lambda: count_connections(watch) <= 1)
        assert queue.contains("locked")


@contextmanager
def out_of_files() -> Iterator[None]:
    """No file and no connection can be opened inside the block."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest_free = os.dup(0)
    os.close(lowest_free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_out_of_file_descriptors(
    ready_database: str, watch: psycopg.Connection, face: Face
) -> None:
    with face.open(ready_database, "orders", retry=RetryPolicy.never()) as queue:
        queue.offer("locked", 1, timedelta(hours=1))
        refused = pytest.raises(StoreUnavailable, match="Too many open files")
        with busy(ready_database, queue, watch), out_of_files(), refused:
            queue.contains("a")
        assert queue.contains("locked")


SLEEPING = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event = 'PgSleep'
"""
CANCEL = """
    SELECT pg_cancel_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event = 'PgSleep'
"""


def test_a_connection_that_is_not_yet_set_up_is_not_used(
    ready_database: str, watch: psycopg.Connection, face: Face, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(settings, "SESSION_SETTINGS", "SELECT pg_sleep(30)")
        opening = in_background(partial(face.open, ready_database, "orders"))
        until_one(watch, SLEEPING)
    watch.execute(CANCEL)
    with opening.result(PATIENCE) as queue:
        assert queue.offer("a", 1) is CREATED
