"""Wake-ups between processes, and what finds a message where they get lost."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import partial
from queue import SimpleQueue
from typing import Any

import psycopg
import pytest

from duequeue import Queue
from duequeue.contract.faces import DeliveryFace, QueueFace, SyncFace
from duequeue.contract.phrases import MINUTE, PATIENCE, SECOND, in_background
from tests.race.consumer_parts import offer, offer_within
from tests.race.crew import Hand
from tests.race.deaf_proxy import deaf_proxy
from tests.race.watching import until_one

LISTENING = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND query = 'LISTEN duequeue'
"""
CUT_THE_LINE = """
    SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity
    WHERE datname = current_database() AND query = 'LISTEN duequeue'
"""


@pytest.fixture
def patient_queue(store_url: str) -> Iterator[QueueFace]:
    """A queue whose regular look would come far too late for its test, by the machine's clock."""
    with SyncFace().open(store_url, "orders", poll_interval=10 * MINUTE) as queue:
        yield queue


def key_of(polling: "Future[DeliveryFace | None]") -> str:
    delivery = polling.result(PATIENCE)
    assert delivery is not None
    assert delivery.ack()
    return delivery.key


@pytest.mark.parametrize(
    "producer", [offer, partial(offer, soon=True), offer_within], ids=["now", "soon", "within"]
)
def test_a_poll_is_woken_by_another_process(
    patient_queue: QueueFace,
    store: str,
    store_url: str,
    hand: Hand,
    producer: Callable[..., object],
) -> None:
    if store == "redis" and producer is offer_within:
        pytest.skip("Redis has no transactions of a caller")
    if store == "mariadb" and producer is offer_within:
        pytest.skip("a commit by the caller wakes nobody on MariaDB, where polling finds it")
    if store == "http" and producer is offer_within:
        pytest.skip("a transaction does not reach over HTTP")
    for key in "abc":
        polling = in_background(patient_queue.poll)
        hand.start(partial(producer, store_url, key))
        assert hand.outcome().error is None
        assert key_of(polling) == key


def test_a_consumer_is_woken_by_another_process(
    patient_queue: QueueFace, store_url: str, hand: Hand
) -> None:
    handled: SimpleQueue[str] = SimpleQueue()
    queue: Any = patient_queue
    with queue.consume(lambda delivery: handled.put(delivery.key)):
        for key in "abc":
            hand.start(partial(offer, store_url, key))
            assert hand.outcome().error is None
            assert handled.get(timeout=PATIENCE) == key


@pytest.mark.parametrize("store", ["postgres"], indirect=True)
def test_the_line_to_the_others_is_cut(
    patient_queue: QueueFace, store_url: str, hand: Hand, watch: psycopg.Connection
) -> None:
    polling = in_background(patient_queue.poll)
    until_one(watch, LISTENING)
    for key in ("while it is cut", "and again"):
        watch.execute(CUT_THE_LINE)
        hand.start(partial(offer, store_url, key))  # told to nobody
        assert hand.outcome().error is None
        assert key_of(polling) == key  # found when the line stands again
        polling = in_background(patient_queue.poll)
        until_one(watch, LISTENING)
    hand.start(partial(offer, store_url, "told"))
    assert hand.outcome().error is None
    assert key_of(polling) == "told"


@pytest.mark.parametrize("store", ["postgres"], indirect=True)
def test_where_no_notification_comes_through_messages_are_found_by_polling(
    store_url: str, hand: Hand, watch: psycopg.Connection
) -> None:
    handled: SimpleQueue[str] = SimpleQueue()
    with deaf_proxy(store_url) as proxy:
        options: dict[str, Any] = {"poll_interval": SECOND / 2}
        with (
            Queue.open(proxy.url, "orders", **options) as queue,
            queue.consume(lambda delivery: handled.put(delivery.key)),
        ):
            until_one(watch, LISTENING)
            for key in "abc":
                hand.start(partial(offer, store_url, key))
                assert hand.outcome().error is None
                assert handled.get(timeout=PATIENCE) == key
        assert proxy.lost > 0
