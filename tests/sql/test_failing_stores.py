"""A store that fails, is busy or loses its connections, under both faces."""

import sqlite3
from pathlib import Path

import psycopg
import pytest

from duequeue import ManualClock, OfferOutcome
from duequeue.contract.cron_phrases import periodic_keys
from duequeue.contract.faces import Face, QueueFace
from duequeue.contract.fixtures import Consume
from duequeue.contract.phrases import MINUTE, PATIENCE, claim, in_background
from duequeue.contract.stage import Stage
from duequeue.contract.test_events import Diary
from duequeue.events.events import StoreFailed

CREATED = OfferOutcome.CREATED

END_THE_OTHERS = """
    SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


def cut_every_connection(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(END_THE_OTHERS)


def test_a_queue_outlives_its_connections(
    face: Face, clock: ManualClock, postgres_url: str
) -> None:
    with face.open(postgres_url, "orders", clock=clock) as queue:
        for n in range(3):
            assert queue.offer(str(n), n) is CREATED
            cut_every_connection(postgres_url)
            assert claim(queue).ack()


def test_a_cron_outlives_its_connections(face: Face, clock: ManualClock, postgres_url: str) -> None:
    with face.open(postgres_url, "orders", clock=clock) as queue:
        handle = queue.cron.install_periodic_tick("reports", MINUTE, 1)
        for minute in range(5, 8):
            cut_every_connection(postgres_url)
            clock.advance(MINUTE)
            handle.refresh()
            handle.refresh()
            assert queue.contains(periodic_keys(minute)[0])


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
def test_a_writer_waits_its_turn_instead_of_failing_at_once(
    queue: QueueFace, store_url: str
) -> None:
    queue.offer("before", 1)
    other = sqlite3.connect(store_url.removeprefix("sqlite:///"), isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        offering = in_background(lambda: queue.offer("a", 1))
        assert queue.contains("before")
        other.execute("COMMIT")
        assert offering.result(PATIENCE) is CREATED
    finally:
        other.close()


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
def test_listeners_learn_of_a_store_that_fails(
    queue: QueueFace, stage: Stage, consume: Consume, tmp_path: Path
) -> None:
    diary = Diary(queue)
    with sqlite3.connect(tmp_path / "queue.db") as other:
        other.execute("DROP TABLE duequeue_message")
    other.close()
    consume(queue)
    failure = diary.next(StoreFailed)
    assert failure.queue_name == "orders"
    assert "duequeue_message" in str(failure.error)
