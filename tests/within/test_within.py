"""`within`: the same face inside the caller's own transaction, which only the caller ends."""

import sqlite3
from collections.abc import Callable
from typing import Any

import psycopg
import pymysql
import pytest
from pymysql.constants import SERVER_STATUS

from duequeue import ConfigHash, CronMessage, ManualClock, Message, OfferOutcome, StoreUnavailable
from duequeue.contract.faces import Face, QueueFace
from duequeue.contract.fixtures import START, OpenQueue
from duequeue.contract.phrases import (
    DAY,
    DEFAULT_LEASE,
    HOUR,
    PATIENCE,
    claim,
    everything_in,
    in_background,
    keys_of,
    snapshot,
)
from duequeue.process import contact
from tests.fixtures.connections import connect_postgres, execute
from tests.within.conftest import Connect


@pytest.fixture(params=["sqlite", "postgres", "mariadb"])
def store(request: pytest.FixtureRequest) -> str:
    """Each store that has transactions."""
    return str(request.param)


def in_transaction(connection: Any) -> bool:
    if isinstance(connection, sqlite3.Connection):
        return connection.in_transaction
    if isinstance(connection, pymysql.Connection):
        with connection.cursor() as cursor:
            cursor.execute("SELECT @@in_transaction")
            return bool(cursor.fetchall() == ((1,),))
    if hasattr(connection, "server_status"):
        return bool(connection.server_status & SERVER_STATUS.SERVER_STATUS_IN_TRANS)
    status = connection.info.transaction_status
    return bool(status == psycopg.pq.TransactionStatus.INTRANS)


def test_no_call_begins_or_ends_a_transaction(queue: QueueFace, connect: Connect) -> None:
    """If one did, the savepoint that the caller made before it would be gone."""
    connection = connect()
    inside = queue.within(connection)
    keys = [f"k{number}" for number in range(20)]

    def settle() -> object:
        first, second, third, *others = inside.try_poll_many(10)
        first.bury("broken")
        second.release(HOUR)
        third.ack(1)
        return inside.ack_many(others)

    calls: list[Callable[[], object]] = [
        lambda: inside.offer("a", 1),
        lambda: inside.offer_batch([Message(key, 1) for key in keys]),
        lambda: inside.offer_batch([Message(key, 2) for key in keys]),
        settle,
        inside.revive_all,
        lambda: inside.reschedule("k15", START + DAY),
        lambda: inside.drop("k16"),
        inside.stats,
        inside.list,
        lambda: inside.cron.install_tick(ConfigHash("one"), "cron", [CronMessage(1, START)]),
        lambda: inside.cron.uninstall_tick(ConfigHash("one"), "cron"),
        lambda: inside.drop_all("orders"),
    ]
    for call in calls:
        execute(connection, "SAVEPOINT mine")
        call()
        execute(connection, "RELEASE SAVEPOINT mine")
    connection.rollback()
    assert queue.stats().total == 0


def test_what_is_offered_within_appears_with_the_commit(queue: QueueFace, connect: Connect) -> None:
    connection = connect()
    inside = queue.within(connection)
    assert inside.offer("a", 1) is OfferOutcome.CREATED
    assert inside.offer_batch([Message("b", 1), Message("a", 1, START)]) == [
        OfferOutcome.CREATED,
        OfferOutcome.IGNORED,
    ]
    assert in_transaction(connection)
    assert queue.stats().total == 0
    assert inside.stats().total == 2
    connection.commit()
    assert keys_of(queue.try_poll_many(10)) == ["a", "b"]


def test_what_is_offered_within_vanishes_with_the_rollback(
    queue: QueueFace, connect: Connect
) -> None:
    connection = connect()
    inside = queue.within(connection)
    inside.offer("a", 1)
    inside.offer_batch([Message(str(n), n) for n in range(1500)])
    assert in_transaction(connection)
    connection.rollback()
    assert queue.stats().total == 0
    assert queue.try_poll() is None
    assert queue.offer("a", 1) is OfferOutcome.CREATED


@pytest.mark.parametrize("store", ["sqlite", "postgres"], indirect=True)
def test_the_commit_wakes_a_waiting_poll(open_queue: OpenQueue, connect: Connect) -> None:
    queue = open_queue(poll_interval=DAY)
    waiting = in_background(queue.poll)
    queue.stats()
    connection = connect()
    queue.within(connection).offer("a", 1)
    queue.stats()
    assert not waiting.done()
    connection.commit()
    delivery = waiting.result(PATIENCE)
    assert delivery is not None
    assert delivery.ack()


@pytest.mark.parametrize("store", ["sqlite", "postgres"], indirect=True)
def test_an_order_and_its_message_are_one(queue: QueueFace, connect: Connect) -> None:
    connection = connect()
    connection.execute("CREATE TEMPORARY TABLE purchase (number INTEGER)")
    connection.execute("INSERT INTO purchase VALUES (7)")
    queue.within(connection).offer("7", {"number": 7})
    connection.commit()
    assert connection.execute("SELECT number FROM purchase").fetchall() == [(7,)]
    assert claim(queue).payload == {"number": 7}


def test_what_is_settled_within_is_settled_with_the_commit(
    queue: QueueFace, connect: Connect
) -> None:
    queue.offer_batch([Message(key, 1) for key in "abcd"])
    connection = connect()
    inside = queue.within(connection)
    a, b, c, d = inside.try_poll_many(4)
    assert a.ack()
    assert b.release(HOUR)
    assert c.bury("enough")
    assert inside.ack_many([a, d]) == 1
    assert in_transaction(connection)
    assert queue.stats().due == 4
    connection.commit()
    stats = queue.stats()
    assert (stats.total, stats.future, stats.buried) == (1, 1, 1)


def test_what_is_settled_within_comes_back_with_the_rollback(
    queue: QueueFace, connect: Connect
) -> None:
    queue.offer_batch([Message(key, 1) for key in "abc"])
    before = everything_in(queue, *"abc")
    connection = connect()
    inside = queue.within(connection)
    a, b, c = inside.try_poll_many(3)
    assert [a.ack(), b.release(), c.bury("enough")] == [True] * 3
    assert inside.drop("b")
    assert inside.reschedule("b", HOUR) is False
    assert inside.revive("c")
    assert inside.reschedule("c", HOUR)
    connection.rollback()
    assert everything_in(queue, *"abc") == before
    assert [delivery.attempt for delivery in queue.try_poll_many(3)] == [1, 1, 1]


def test_a_poll_rolled_back_hides_nothing(queue: QueueFace, connect: Connect) -> None:
    queue.offer_batch([Message("a", 1, START - HOUR), Message("b", 1)])
    connection = connect()
    assert claim(queue.within(connection)).key == "a"
    connection.rollback()
    assert keys_of(queue.try_poll_many(2)) == ["a", "b"]


def test_a_poll_committed_leases(queue: QueueFace, connect: Connect, clock: ManualClock) -> None:
    queue.offer("a", 1)
    connection = connect()
    claim(queue.within(connection))
    connection.commit()
    assert queue.try_poll() is None
    clock.advance(DEFAULT_LEASE)
    assert claim(queue).attempt == 2


def test_everything_is_seen_from_within(queue: QueueFace, connect: Connect) -> None:
    queue.offer("a", 1)
    inside = queue.within(connect())
    inside.offer("b", 2, HOUR)
    assert inside.name == "orders"
    assert inside.contains("a")
    assert snapshot(inside, "b").payload == 2
    assert inside.stats().total == 2
    assert inside.reschedule("a", 2 * HOUR)
    assert [one.key for one in inside.list().messages] == ["b", "a"]
    assert [one.key for one in inside.list(prefix="a").messages] == ["a"]
    assert [one.key for one in queue.list().messages] == ["a"]
    assert inside.drop_all("orders") == 2
    assert inside.buried(5) == []
    assert inside.purge_buried(START) == 0
    assert inside.revive_all() == 0


def test_an_update_within_revokes_the_lease_with_the_commit(
    queue: QueueFace, connect: Connect
) -> None:
    queue.offer("a", 1, START)
    holder = claim(queue)
    connection = connect()
    assert queue.within(connection).offer("a", 2, START) is OfferOutcome.UPDATED
    connection.commit()
    assert not holder.ack()
    assert claim(queue).payload == 2


def test_bad_input_leaves_the_transaction_usable(queue: QueueFace, connect: Connect) -> None:
    connection = connect()
    inside = queue.within(connection)
    inside.offer("a", 1)
    with pytest.raises(ValueError, match="key"):
        inside.offer("", 1)
    with pytest.raises(ValueError, match="orders"):
        inside.drop_all("")
    inside.offer("b", 1)
    connection.commit()
    assert keys_of(queue.try_poll_many(10)) == ["a", "b"]


def test_the_queue_stays_open_after_the_connection_closed(
    queue: QueueFace, connect: Connect
) -> None:
    connection = connect()
    queue.within(connection).offer("a", 1)
    connection.commit()
    connection.close()
    assert claim(queue).ack()


def test_closing_the_inner_face_ends_neither_transaction_nor_queue(
    queue: QueueFace, connect: Connect
) -> None:
    connection = connect()
    with queue.within(connection) as inside:
        inside.offer("a", 1)
    assert in_transaction(connection)
    connection.commit()
    assert claim(queue).ack()


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
def test_a_transaction_that_sqlite3_opened_by_itself(queue: QueueFace, store_url: str) -> None:
    connection = sqlite3.connect(store_url.removeprefix("sqlite:///"), check_same_thread=False)
    try:
        connection.execute("CREATE TEMPORARY TABLE purchase (number INTEGER)")
        connection.execute("INSERT INTO purchase VALUES (7)")
        assert connection.in_transaction
        queue.within(connection).offer("a", 1)
        connection.rollback()
        assert queue.stats().total == 0
        connection.execute("INSERT INTO purchase VALUES (8)")
        queue.within(connection).offer("a", 1)
        connection.commit()
        assert queue.contains("a")
    finally:
        connection.close()


@pytest.mark.parametrize("store", ["postgres"], indirect=True)
def test_an_explicit_transaction_on_an_autocommit_connection(
    queue: QueueFace, store_url: str, face: Face
) -> None:
    with connect_postgres(face, store_url, autocommit=True) as connection:
        connection.execute("BEGIN")
        queue.within(connection).offer("a", 1)
        assert in_transaction(connection)
        connection.execute("ROLLBACK")
        assert not queue.contains("a")
        connection.execute("BEGIN")
        queue.within(connection).offer("b", 1)
        connection.execute("COMMIT")
        assert queue.contains("b")


def test_within_wants_a_connection_of_the_stores_kind(queue: QueueFace) -> None:
    for connection in (None, "a url", object()):
        with pytest.raises(TypeError, match="connection"):
            queue.within(connection)


@pytest.mark.parametrize("store", ["memory"], indirect=True)
def test_memory_has_no_transactions(queue: QueueFace) -> None:
    connection = sqlite3.connect(":memory:")
    try:
        with pytest.raises(TypeError, match="memory"):
            queue.within(connection)
    finally:
        connection.close()


def test_a_failure_within_is_not_logged_as_an_outage_of_the_store(
    postgres_url: str,
    face: Face,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(contact, "SILENT_SECONDS", 1e-6)
    with (
        face.open(postgres_url, "orders") as queue,
        psycopg.connect(postgres_url) as other,
        connect_postgres(face, postgres_url) as connection,
    ):
        queue.offer("a", 1)
        other.execute("SELECT FROM duequeue_message FOR UPDATE")
        for _ in range(2):
            connection.execute("SET LOCAL lock_timeout = '1ms'")
            with pytest.raises(StoreUnavailable):
                queue.within(connection).offer("a", 2)
            connection.rollback()
        assert queue.contains("a")
    assert "available" not in caplog.text
