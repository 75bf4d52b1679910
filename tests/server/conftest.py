"""One server for all tests of this process, and a queue of its own for each test."""

import secrets
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from duequeue.contract.stage import until
from duequeue.server import app_for
from tests.server.served import Served, served


@pytest.fixture(scope="session")
def server_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("server")


@pytest.fixture(scope="session")
def store_of_server(server_folder: Path) -> str:
    """The URL of the store that the server serves."""
    return f"sqlite:///{server_folder / 'queues.db'}?synchronous=normal"


@pytest.fixture(scope="session")
def server(store_of_server: str) -> Iterator[Served]:
    with served(app_for(store_of_server)) as running:
        yield running


@pytest.fixture(scope="session")
def http(server: Served) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


@pytest.fixture(autouse=True)
def _nobody_waits_any_more(request: pytest.FixtureRequest) -> Iterator[None]:
    """Wait for the server to notice who has gone, because tests count those who wait."""
    if "server" not in request.fixturenames:
        yield
        return
    server: Served = request.getfixturevalue("server")
    yield
    until(lambda: server.service.live.waiters == 0)


@pytest.fixture
def name() -> str:
    """The name of a queue that no other test has."""
    return f"q{secrets.token_hex(6)}"


@pytest.fixture
def path(name: str) -> str:
    """The path of that queue."""
    return f"/v1/queues/{name}"
