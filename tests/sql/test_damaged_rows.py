"""Rows that somebody damaged by hand do not stop a queue; errors name the key and the column."""

import sqlite3
from contextlib import closing
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from duequeue import ManualClock, Message, State, StoreError
from duequeue.contract.faces import QueueFace
from duequeue.contract.fixtures import START, Consume, OpenQueue
from duequeue.contract.phrases import DEFAULT_LEASE, HOUR, MINUTE, keys_of, snapshot
from duequeue.contract.stage import until
from duequeue.instants import EPOCH, LATEST, MILLISECOND, from_millis

MOST_ATTEMPTS = 2**31 - 1
LARGEST = 2**63 - 1

pytestmark = pytest.mark.parametrize("store", ["sqlite", "postgres"], indirect=True)


def damage(url: str, key: str, column: str, value: Any) -> None:
    """Change a row without the queue."""
    update = f"UPDATE duequeue_message SET {column} = $1 WHERE key = $2"  # noqa: S608 - ours
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as file, file:
            file.execute(update.replace("$1", "?").replace("$2", "?"), [value, key])
    else:
        with psycopg.connect(url, cursor_factory=psycopg.RawCursor) as connection:
            connection.execute(update.encode(), [value, key])


def test_an_attempt_at_its_maximum_stops_no_queue(
    queue: QueueFace, store: str, store_url: str, clock: ManualClock
) -> None:
    queue.offer_batch([Message("a", 1, START), Message("b", 1, START)])
    damage(store_url, "a", "attempt", LARGEST if store == "sqlite" else MOST_ATTEMPTS)
    for attempt in (1, 2):
        found = [(one.key, one.attempt) for one in queue.try_poll_many(2)]
        assert found == [("a", MOST_ATTEMPTS), ("b", attempt)]
        clock.advance(DEFAULT_LEASE)
    assert queue.ack_many(queue.try_poll_many(2)) == 2


def test_with_max_attempts_it_is_buried(open_queue: OpenQueue, store_url: str) -> None:
    queue = open_queue(max_attempts=3)
    queue.offer("a", 1)
    damage(store_url, "a", "attempt", MOST_ATTEMPTS)
    assert queue.try_poll() is None
    assert [one.attempts for one in queue.buried(1)] == [MOST_ATTEMPTS - 1]


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("headers", "no JSON"),
        ("headers", '["a list"]'),
        ("headers", '{"number": 1}'),
        ("asked_at", LARGEST),
        ("asked_at", -LARGEST),
        ("asked_at", LATEST + 1),
    ],
)
def test_a_poll_buries_a_damaged_message_and_goes_on(
    open_queue: OpenQueue, store_url: str, column: str, value: object
) -> None:
    queue = open_queue(history=True)
    queue.offer("bad", "payload", START - HOUR, headers={"trace": "1"})
    queue.offer("good", "payload")
    damage(store_url, "bad", column, value)
    with pytest.raises(StoreError, match=f"'bad'.*{column}"):
        queue.read("bad")
    assert keys_of(queue.try_poll_many(2)) == ["good"]
    (buried,) = queue.buried(2)
    assert (buried.key, buried.payload, buried.attempts) == ("bad", "payload", 1)
    assert column in buried.reason
    assert [one.key for one in queue.history(2)] == ["bad"]
    assert queue.revive("bad")


def test_a_consumer_outlives_damaged_messages(
    queue: QueueFace, store_url: str, consume: Consume
) -> None:
    queue.offer_batch([Message(key, 1, START, headers={"trace": "1"}) for key in "abc"])
    damage(store_url, "a", "headers", "{")
    damage(store_url, "b", "asked_at", LARGEST)
    handled: list[str] = []
    with consume(queue, lambda delivery: handled.append(delivery.key)):
        until(lambda: queue.stats().total == 0)
    assert handled == ["c"]
    assert keys_of(queue.buried(3)) == ["a", "b"]


def test_a_lease_beyond_all_time_ends_at_the_last_instant(queue: QueueFace, store_url: str) -> None:
    queue.offer("a", 1)
    damage(store_url, "a", "leased_until", LARGEST)
    assert snapshot(queue, "a").leased_until == from_millis(LATEST)
    assert [one.leased_until for one in queue.list().messages] == [from_millis(LATEST)]
    assert queue.try_poll() is None
    assert queue.stats().leased == 1
    assert queue.drop("a")


@pytest.mark.parametrize("due_at", [LARGEST, -LARGEST - 1])
def test_a_due_time_beyond_all_time_stops_no_queue(
    queue: QueueFace, store_url: str, clock: ManualClock, due_at: int
) -> None:
    queue.offer_batch([Message("a", 1, START), Message("b", 1, START)])
    damage(store_url, "a", "due_at", due_at)
    stats = queue.stats()
    nearest = stats.next_due_at if due_at > 0 else stats.oldest_due_at
    assert nearest is not None
    assert abs(nearest - EPOCH) > 1900 * 365 * 24 * HOUR
    assert keys_of(queue.poll_many(2, timedelta(0))) == (["b"] if due_at > 0 else ["a", "b"])
    assert queue.poll_many(2, timeout=MILLISECOND) == []
    clock.advance(MINUTE)
    assert snapshot(queue, "a").state is (State.FUTURE if due_at > 0 else State.LEASED)
    assert sorted(one.key for one in queue.list().messages) == ["a", "b"]
