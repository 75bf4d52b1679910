"""`within` refuses a connection to another database, and one to a database without our tables."""

import sqlite3
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from duequeue import OfferOutcome, SchemaError, WrongDatabase
from duequeue.contract.faces import Face, QueueFace
from tests.fixtures.connections import connect_mariadb, connect_postgres, execute
from tests.fixtures.postgres import PostgresServer
from tests.sql.wire import Traffic, Wire
from tests.within.conftest import Connect


@pytest.fixture(params=["sqlite", "postgres", "mariadb"])
def store(request: pytest.FixtureRequest) -> str:
    """Each store that has transactions."""
    return str(request.param)


@pytest.fixture
def elsewhere(store: str, other_url: str, face: Face) -> Iterator[Any]:
    """A connection of the application's own to the second database, in an open transaction."""
    if store == "postgres":
        connection = connect_postgres(face, other_url)
    elif store == "mariadb":
        connection = connect_mariadb(face, other_url)
    else:
        path = other_url.removeprefix("sqlite:///")
        connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        connection.execute("BEGIN")
    yield connection
    connection.close()


@pytest.mark.parametrize("name", ["orders", "invoices"])
def test_another_database_is_refused(
    queue: QueueFace, face: Face, other_url: str, elsewhere: Any, name: str
) -> None:
    with face.open(other_url, name) as other:
        with pytest.raises(WrongDatabase, match="another database"):
            queue.within(elsewhere).offer("a", 1)
        with pytest.raises(WrongDatabase, match="another database"):
            queue.within(elsewhere).stats()
        elsewhere.commit()
        assert (other.stats().total, queue.stats().total) == (0, 0)


def test_a_refused_transaction_stays_usable(
    queue: QueueFace, face: Face, other_url: str, elsewhere: Any
) -> None:
    with face.open(other_url, "orders") as other:
        other.within(elsewhere).offer("a", 1)
        with pytest.raises(WrongDatabase):
            queue.within(elsewhere).offer("b", 1)
        assert other.within(elsewhere).offer("c", 1) is OfferOutcome.CREATED
        elsewhere.commit()
        assert (other.stats().total, queue.stats().total) == (2, 0)


def test_a_database_without_our_tables_is_refused(queue: QueueFace, elsewhere: Any) -> None:
    execute(elsewhere, "CREATE TABLE purchase (number INTEGER)")
    with pytest.raises(SchemaError, match="duequeue migrate"):
        queue.within(elsewhere).offer("a", 1)
    execute(elsewhere, "INSERT INTO purchase VALUES (7)")
    elsewhere.commit()
    assert list(execute(elsewhere, "SELECT number FROM purchase").fetchall()) == [(7,)]
    assert queue.stats().total == 0


def test_tables_that_vanished_are_missed(queue: QueueFace, connect: Connect) -> None:
    connection = connect()
    execute(connection, "ALTER TABLE duequeue_message RENAME TO elsewhere")
    connection.commit()
    try:
        with pytest.raises(SchemaError, match="duequeue migrate"):
            queue.offer("a", 1)
    finally:
        execute(connection, "ALTER TABLE elsewhere RENAME TO duequeue_message")
        connection.commit()


@pytest.mark.parametrize("store", ["postgres"], indirect=True)
def test_another_schema_is_another_database(
    queue: QueueFace, store_url: str, face: Face, connect: Connect
) -> None:
    connection = connect()
    connection.execute("CREATE SCHEMA other")
    connection.commit()
    try:
        with face.open(f"{store_url}?options=-csearch_path%3Dother", "orders") as other:
            queue.within(connection).offer("a", 1)
            connection.execute("SET LOCAL search_path TO other")
            with pytest.raises(WrongDatabase, match="schema"):
                queue.within(connection).offer("b", 1)
            assert other.within(connection).offer("c", 1) is OfferOutcome.CREATED
            connection.commit()
            assert (queue.stats().total, other.stats().total) == (1, 1)
    finally:
        connection.execute("DROP SCHEMA other CASCADE")
        connection.commit()


@pytest.mark.parametrize("store", ["mariadb"], indirect=True)
def test_a_connection_that_changes_its_database(
    queue: QueueFace, store_url: str, other_url: str, face: Face
) -> None:
    """Only the login of the other database may use both."""
    names = [urlsplit(url).path.removeprefix("/") for url in (store_url, other_url)]
    connection = connect_mariadb(face, other_url)
    execute(connection, f"USE {names[0]}")
    with face.open(other_url, "orders") as other:
        queue.within(connection).offer("a", 1)
        execute(connection, f"USE {names[1]}")
        with pytest.raises(WrongDatabase, match="another database"):
            queue.within(connection).offer("b", 1)
        assert other.within(connection).offer("c", 1) is OfferOutcome.CREATED
        execute(connection, f"USE {names[0]}")
        queue.within(connection).offer("d", 1)
        connection.commit()
        assert (queue.stats().total, other.stats().total) == (2, 1)
    connection.close()


def test_a_server_that_began_again_is_the_same_database(
    frail_server: PostgresServer, face: Face
) -> None:
    with face.open(frail_server.url(), type(face).__name__) as queue:
        for key in ("a", "b"):
            with connect_postgres(face, frail_server.url()) as connection:
                assert queue.within(connection).offer(key, 1) is OfferOutcome.CREATED
                connection.commit()
            frail_server.restart()
        assert queue.stats().total == 2


@pytest.mark.parametrize("store", ["postgres"], indirect=True)
def test_a_connection_is_asked_only_once(queue: QueueFace, store_url: str, face: Face) -> None:
    with Wire(store_url) as wire, connect_postgres(face, wire.url) as connection:
        first = wire.traffic_of(lambda: queue.within(connection).offer("a", 1))
        second = wire.traffic_of(lambda: queue.within(connection).offer("b", 1))
        assert (first.statements > 2, second) == (True, Traffic(1, 1, 0))
