"""Queues behind a real PgBouncer that lends a server connection for each transaction."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import psycopg
import pytest

from duequeue import (
    Bury,
    ManualClock,
    Message,
    OfferOutcome,
    Retry,
    RetryPolicy,
    SystemClock,
)
from duequeue.contract.cron_phrases import eventually, periodic_keys
from duequeue.contract.faces import DeliveryFace, Face, QueueFace
from duequeue.contract.fixtures import Consume, OpenQueue
from duequeue.contract.phrases import (
    DAY,
    MINUTE,
    PATIENCE,
    SECOND,
    in_background,
    keys_of,
    offer_from_another_process,
)
from duequeue.contract.stage import Stage, until_gone
from tests.fixtures.pgbouncer import SERVER_CONNECTIONS, PgBouncer

CREATED, UPDATED = OfferOutcome.CREATED, OfferOutcome.UPDATED
CLIENTS = 4 * SERVER_CONNECTIONS
ROUNDS = 8

# PgBouncer keeps these up to date by itself, for each client.
OF_THE_POOLER = {
    "application_name",
    "client_encoding",
    "DateStyle",
    "IntervalStyle",
    "TimeZone",
    "standard_conforming_strings",
}
LEFT_BEHIND = """
    SELECT 'setting ' || name FROM pg_settings WHERE source = 'session' AND name != ALL(%s)
    UNION ALL SELECT 'prepared statement ' || name FROM pg_prepared_statements
    UNION ALL SELECT 'channel ' || name FROM pg_listening_channels() AS name
    UNION ALL SELECT 'lock ' || objid FROM pg_locks
        WHERE locktype = 'advisory' AND pid = pg_backend_pid()
    UNION ALL SELECT 'setting duequeue.claim_commit'
        WHERE current_setting('duequeue.claim_commit', true) != ''
"""


@pytest.fixture
def store_url(pgbouncer: PgBouncer, ready_database: str) -> str:
    """An empty database behind the pooler, with the option that the guide asks for."""
    return f"{pgbouncer.url(ready_database)}?pooler=transaction"


@contextmanager
def every_server_connection(url: str) -> Iterator[list[psycopg.Connection]]:
    """Take hold of every connection that the pooler has, by opening as many transactions."""
    with ExitStack() as opened:
        clients = [
            opened.enter_context(psycopg.connect(url, prepare_threshold=None))
            for _ in range(SERVER_CONNECTIONS)
        ]
        pids = {client.execute("SELECT pg_backend_pid()").fetchone() for client in clients}
        assert len(pids) == SERVER_CONNECTIONS
        yield clients


def left_behind(url: str) -> set[str]:
    """Return what is left on the server connections for the clients that get them next."""
    names = sorted(OF_THE_POOLER)
    with every_server_connection(url.partition("?")[0]) as clients:
        return {row[0] for client in clients for row in client.execute(LEFT_BEHIND, [names])}


def take_part(face: Face, url: str, number: int) -> None:
    """Do everything that a client does, on whatever server connections the pooler lends."""
    options: dict[str, Any] = {"retry": RetryPolicy.never(), "history": number % 2 == 0}
    with face.open(url, f"orders-{number}", **options) as queue:
        for each in range(ROUNDS):
            use(queue, f"{each}")


def use(queue: QueueFace, key: str) -> None:
    """Offer, update, poll, and settle in every way."""
    assert queue.offer(key, 1) is CREATED
    assert queue.offer(key, 2) is UPDATED
    # One key twice may take a transaction of several statements.
    batch = [Message("twice", 1), Message("twice", 2), Message("once", 1, replace=False)]
    assert queue.offer_batch(batch) == [CREATED, UPDATED, CREATED]
    deliveries = {delivery.key: delivery for delivery in queue.poll_many(3, SECOND)}
    assert sorted(deliveries) == sorted([key, "once", "twice"])
    settle(deliveries[key], deliveries["once"], deliveries["twice"])
    assert queue.revive("twice", DAY)
    assert queue.drop("twice")
    assert queue.drop("once")


def settle(acked: DeliveryFace, released: DeliveryFace, buried: DeliveryFace) -> None:
    assert acked.extend()
    assert acked.ack()
    assert not acked.ack()
    assert released.release()
    assert not released.ack()
    assert buried.bury("too odd")


def test_many_clients_share_a_few_server_connections(face: Face, store_url: str) -> None:
    with ThreadPoolExecutor(CLIENTS) as threads:
        parts = [threads.submit(take_part, face, store_url, each) for each in range(CLIENTS)]
    for part in parts:
        part.result()
    assert left_behind(store_url) == set()


def test_a_consumer(
    queue: QueueFace, store_url: str, stage: Stage, consume: Consume, clock: ManualClock
) -> None:
    queue.offer_batch([Message(key, 1) for key in ("acked", "buried", "failed")])
    with consume(queue, batch=1):
        for key, verdict in (("acked", None), ("buried", Bury("too odd")), ("failed", Retry(DAY))):
            scene = stage.next()
            assert scene.delivery.key == key
            clock.advance(10 * SECOND)  # leases are extended meanwhile, and none can end
            scene.end(verdict)
    until_gone(queue, "acked")
    assert keys_of(queue.buried(9)) == ["buried"]
    assert queue.stats().future == 1
    assert left_behind(store_url) == set()


def test_a_cron(queue: QueueFace, store_url: str, clock: ManualClock) -> None:
    queue.cron.install_periodic_tick("reports", MINUTE, "hello")
    for minute in range(1, 6):
        clock.advance(MINUTE)
        eventually(partial(queue.contains, periodic_keys(minute + 4)[0]))
    assert queue.cron.pause("reports")
    assert queue.cron.resume("reports")
    assert [status.prefix for status in queue.cron.list()] == ["reports"]
    assert left_behind(store_url) == set()


def test_a_waiting_poll_finds_the_message_of_another_process(
    open_queue: OpenQueue, store_url: str
) -> None:
    waiting = open_queue(poll_interval=SECOND / 20, clock=SystemClock())
    polling = in_background(waiting.poll)
    offer_from_another_process(store_url, "a")
    delivery = polling.result(PATIENCE)
    assert delivery is not None
    assert delivery.ack()


def test_without_the_option_settings_reach_the_next_client(
    face: Face, pgbouncer: PgBouncer, ready_database: str
) -> None:
    """The other tests mean something, because this pooler does pass on what is left behind."""
    url = pgbouncer.url(ready_database)
    with face.open(url, "orders") as queue:
        queue.offer("a", 1)
    assert "setting enable_seqscan" in left_behind(url)
