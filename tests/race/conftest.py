"""Stores that several connections reach at once, and processes to reach them from."""

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any, Protocol

import psycopg
import pytest

from duequeue import ManualClock
from duequeue.contract.faces import QueueFace, SyncFace
from tests.fixtures.mariadb import MariaDBServer
from tests.fixtures.postgres import PostgresServer
from tests.race.crew import Crew, Hand


class OpenRival(Protocol):
    """Opens queues on one store, each with connections of its own."""

    def __call__(self, url: str | None = None, **options: Any) -> QueueFace: ...


@pytest.fixture(params=["sqlite", "postgres", "mariadb", "redis", "http"])
def store(request: pytest.FixtureRequest) -> str:
    """Each store that has connections to race on."""
    return str(request.param)


@pytest.fixture
def open_rival(store_url: str, clock: ManualClock) -> Iterator[OpenRival]:
    """A factory of blocking queues, all on the test's clock."""
    with ExitStack() as opened:

        def open_one(url: str | None = None, **options: Any) -> QueueFace:
            queue = SyncFace().open(url or store_url, "orders", **{"clock": clock, **options})
            return opened.enter_context(queue)

        yield open_one


@pytest.fixture(params=["frail_server", "frail_mariadb"])
def stoppable(request: pytest.FixtureRequest) -> PostgresServer | MariaDBServer:
    """Each server of a database that may be stopped."""
    server: PostgresServer | MariaDBServer = request.getfixturevalue(request.param)
    return server


@pytest.fixture
def frail_url(stoppable: PostgresServer | MariaDBServer) -> Iterator[str]:
    """A database on it."""
    url = stoppable.create_database()
    yield url
    stoppable.drop_database(url)


@pytest.fixture(scope="session")
def crew() -> Iterator[Crew]:
    """Other processes."""
    crew = Crew()
    yield crew
    crew.end()


@pytest.fixture
def hand() -> Iterator[Hand]:
    """One other process, for a test that may not leave it as it was."""
    hand = Hand()
    yield hand
    hand.end()


@pytest.fixture
def bystander(open_rival: OpenRival) -> QueueFace:
    """A queue that is left alone, by which key `a` was stored."""
    queue = open_rival()
    queue.offer("a", 1)
    return queue


@pytest.fixture
def watch(store_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(store_url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def lock(bystander: QueueFace, store_url: str) -> Iterator[psycopg.Connection]:
    """Somebody else's transaction, which holds the row of key `a`."""
    with psycopg.connect(store_url) as connection:
        connection.execute("SELECT 1 FROM duequeue_message WHERE key = 'a' FOR UPDATE")
        yield connection


@pytest.fixture
def writer(bystander: QueueFace, store_url: str) -> Iterator[sqlite3.Connection]:
    """Somebody else's transaction, which holds the whole file."""
    with closing(sqlite3.connect(store_url.removeprefix("sqlite:///"))) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield connection
