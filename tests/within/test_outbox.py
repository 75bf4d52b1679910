"""The outbox: an order and its message, stored as one, with the connections applications use."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from datetime import timedelta
from functools import partial
from typing import Any

import psycopg
import pytest
import sqlalchemy
from django.db import connections, transaction
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from duequeue import ManualClock, Retry
from duequeue.contract.faces import QueueFace, SyncFace
from duequeue.contract.fixtures import START, Consume, OpenQueue
from duequeue.contract.phrases import DAY, HOUR, claim
from duequeue.contract.stage import Stage, until_gone
from tests.fixtures.connections import connect_mariadb, mariadb_arguments
from tests.fixtures.connections import execute as execute_on
from tests.fixtures.mysqlclient import mysqlclient
from tests.within.django_database import django_database

# Runs statements of the application, and is what `within` takes.
Execute = Callable[[str], Any]
Transaction = Callable[[str], AbstractContextManager[tuple[Execute, Any]]]


class ChangedMyMind(Exception):
    """Rolls an order back."""


@contextmanager
def with_psycopg(url: str) -> Iterator[tuple[Execute, Any]]:
    with psycopg.connect(url, autocommit=True) as connection, connection.transaction():
        yield connection.execute, connection


@contextmanager
def with_pymysql(url: str) -> Iterator[tuple[Execute, Any]]:
    with connect_mariadb(SyncFace(), url) as connection:
        try:
            yield partial(execute_on, connection), connection
        except BaseException:
            connection.rollback()
            raise
        connection.commit()


@contextmanager
def with_mysqlclient(url: str) -> Iterator[tuple[Execute, Any]]:
    with closing(mysqlclient().connect(**mariadb_arguments(url))) as connection:
        try:
            yield partial(execute_on, connection), connection
        except BaseException:
            connection.rollback()
            raise
        connection.commit()


@contextmanager
def with_sqlite3(url: str) -> Iterator[tuple[Execute, Any]]:
    path = url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(path)) as connection, connection:
        yield connection.execute, connection


@contextmanager
def with_sqlite3_by_hand(url: str) -> Iterator[tuple[Execute, Any]]:
    path = url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection.execute, connection
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")


@contextmanager
def engine_of(url: str) -> Iterator[sqlalchemy.Engine]:
    drivers = {"postgresql://": "postgresql+psycopg://", "mariadb://": "mariadb+pymysql://"}
    for bare, named in drivers.items():
        url = url.replace(bare, named)
    engine = sqlalchemy.create_engine(url)
    try:
        yield engine
    finally:
        engine.dispose()


@contextmanager
def with_driver_of_sqlalchemy(url: str) -> Iterator[tuple[Execute, Any]]:
    with engine_of(url) as engine, engine.begin() as connection:
        ours = connection.connection.dbapi_connection
        yield lambda statement: connection.execute(sqlalchemy.text(statement)), ours


@contextmanager
def with_sqlalchemy_connection(url: str) -> Iterator[tuple[Execute, Any]]:
    with engine_of(url) as engine, engine.begin() as connection:
        yield lambda statement: connection.execute(sqlalchemy.text(statement)), connection


@contextmanager
def with_sqlalchemy_on_mysqlclient(url: str) -> Iterator[tuple[Execute, Any]]:
    mysqlclient()
    with with_sqlalchemy_connection(url.replace("mariadb:", "mariadb+mysqldb:")) as way:
        yield way


@contextmanager
def with_sqlalchemy_session(url: str) -> Iterator[tuple[Execute, Any]]:
    with engine_of(url) as engine, Session(engine) as session, session.begin():
        yield lambda statement: session.execute(sqlalchemy.text(statement)), session


@contextmanager
def with_scoped_session(url: str) -> Iterator[tuple[Execute, Any]]:
    with engine_of(url) as engine:
        session = scoped_session(sessionmaker(engine))
        with session.begin():
            yield lambda statement: session.execute(sqlalchemy.text(statement)), session
        session.remove()


@contextmanager
def with_django(url: str) -> Iterator[tuple[Execute, Any]]:
    with django_database(url) as alias, transaction.atomic(using=alias):
        yield partial(_execute_with_django, alias), connections[alias]


@contextmanager
def with_django_alias(url: str) -> Iterator[tuple[Execute, Any]]:
    with django_database(url) as alias, transaction.atomic(using=alias):
        yield partial(_execute_with_django, alias), alias


def _execute_with_django(alias: str, statement: str) -> Any:
    cursor = connections[alias].cursor()
    cursor.execute(statement)
    return cursor


WAYS = [
    pytest.param("postgres", with_psycopg, id="psycopg"),
    pytest.param("postgres", with_driver_of_sqlalchemy, id="driver of SQLAlchemy, psycopg"),
    pytest.param("postgres", with_sqlalchemy_connection, id="SQLAlchemy connection, psycopg"),
    pytest.param("postgres", with_sqlalchemy_session, id="SQLAlchemy session, psycopg"),
    pytest.param("postgres", with_scoped_session, id="SQLAlchemy scoped session, psycopg"),
    pytest.param("postgres", with_django, id="Django connection, psycopg"),
    pytest.param("postgres", with_django_alias, id="Django alias, psycopg"),
    pytest.param("mariadb", with_pymysql, id="PyMySQL"),
    pytest.param("mariadb", with_driver_of_sqlalchemy, id="driver of SQLAlchemy, PyMySQL"),
    pytest.param("mariadb", with_sqlalchemy_connection, id="SQLAlchemy connection, PyMySQL"),
    pytest.param("mariadb", with_sqlalchemy_session, id="SQLAlchemy session, PyMySQL"),
    pytest.param("mariadb", with_scoped_session, id="SQLAlchemy scoped session, PyMySQL"),
    pytest.param("mariadb", with_mysqlclient, id="mysqlclient"),
    pytest.param("mariadb", with_sqlalchemy_on_mysqlclient, id="SQLAlchemy, mysqlclient"),
    pytest.param("mariadb", with_django, id="Django connection, mysqlclient"),
    pytest.param("mariadb", with_django_alias, id="Django alias, mysqlclient"),
    pytest.param("sqlite", with_sqlite3, id="sqlite3"),
    pytest.param("sqlite", with_sqlite3_by_hand, id="sqlite3 with BEGIN IMMEDIATE"),
    pytest.param("sqlite", with_sqlalchemy_connection, id="SQLAlchemy connection, sqlite3"),
    pytest.param("sqlite", with_sqlalchemy_session, id="SQLAlchemy session, sqlite3"),
    pytest.param("sqlite", with_django, id="Django connection, sqlite3"),
    pytest.param("sqlite", with_django_alias, id="Django alias, sqlite3"),
]

pytestmark = [
    # psycopg's blocking connections, and sqlite3's, which have no other kind.
    pytest.mark.parametrize("face", ["sync"], indirect=True),
    pytest.mark.parametrize(("store", "transaction"), WAYS, indirect=["store"]),
]


@pytest.fixture
def store(request: pytest.FixtureRequest) -> str:
    """The store whose transactions are used."""
    return str(request.param)


@pytest.fixture(autouse=True)
def orders(queue: QueueFace, store_url: str, transaction: Transaction) -> Iterator[None]:
    """The application's own table."""
    with transaction(store_url) as (execute, _):
        execute("CREATE TABLE purchase (number INTEGER PRIMARY KEY)")
    yield
    with transaction(store_url) as (execute, _):
        execute("DROP TABLE purchase")


def purchases(url: str, transaction: Transaction) -> list[int]:
    with transaction(url) as (execute, _):
        return [number for (number,) in execute("SELECT number FROM purchase").fetchall()]


def test_order_and_message_are_committed_as_one(
    queue: QueueFace, store_url: str, transaction: Transaction
) -> None:
    with transaction(store_url) as (execute, connection):
        execute("INSERT INTO purchase VALUES (7)")
        queue.within(connection).offer("order-7", {"number": 7})
        assert not queue.contains("order-7")
    assert purchases(store_url, transaction) == [7]
    assert claim(queue).payload == {"number": 7}


def test_neither_is_left_of_what_was_rolled_back(
    queue: QueueFace, store_url: str, transaction: Transaction
) -> None:
    with suppress(ChangedMyMind), transaction(store_url) as (execute, connection):
        execute("INSERT INTO purchase VALUES (7)")
        queue.within(connection).offer("order-7", {"number": 7})
        raise ChangedMyMind
    assert purchases(store_url, transaction) == []
    assert not queue.contains("order-7")


def test_the_message_may_come_first(
    queue: QueueFace, store_url: str, transaction: Transaction
) -> None:
    with suppress(ChangedMyMind), transaction(store_url) as (execute, connection):
        queue.within(connection).offer("order-7", {"number": 7})
        execute("INSERT INTO purchase VALUES (7)")
        raise ChangedMyMind
    assert (purchases(store_url, transaction), queue.stats().total) == ([], 0)


def test_a_consumer_is_woken_by_the_commit(
    open_queue: OpenQueue, store_url: str, transaction: Transaction, stage: Stage, consume: Consume
) -> None:
    if store_url.startswith("mariadb"):
        pytest.skip("a commit by the caller wakes nobody on MariaDB, where polling finds it")
    queue = open_queue(poll_interval=DAY)
    consume(queue)
    for number in range(3):
        with transaction(store_url) as (execute, connection):
            execute(f"INSERT INTO purchase VALUES ({number})")  # noqa: S608 - a number of ours
            queue.within(connection).offer(str(number), number)
            assert stage.is_empty()
        scene = stage.next()
        assert scene.delivery.payload == number
        scene.end()
        until_gone(queue, str(number))


def test_a_handler_acks_in_its_own_transaction(
    queue: QueueFace, store_url: str, transaction: Transaction, consume: Consume
) -> None:
    def handle(delivery: Any) -> None:
        with transaction(store_url) as (execute, connection):
            execute("INSERT INTO purchase VALUES (7)")
            assert queue.within(connection).ack_many([delivery]) == 1
            if not delivery.redelivered:
                raise Retry(timedelta(0))

    queue.offer("order-7", 1)
    with consume(queue, handle):
        until_gone(queue, "order-7")
    assert purchases(store_url, transaction) == [7]


def test_who_lost_the_lease_leaves_nothing_behind(
    queue: QueueFace, store_url: str, transaction: Transaction, clock: ManualClock
) -> None:
    queue.offer("order-7", 1, START)
    slow = claim(queue)
    clock.advance(HOUR)
    quick = claim(queue)
    with suppress(ChangedMyMind), transaction(store_url) as (execute, connection):
        execute("INSERT INTO purchase VALUES (7)")
        if not queue.within(connection).ack_many([slow]):
            raise ChangedMyMind
    assert purchases(store_url, transaction) == []
    assert quick.ack()
