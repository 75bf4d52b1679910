"""The grounds on which rounds take place."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.fire.proxy import Proxy
from tests.fire.stores import STORES, Ground, PostgresGround
from tests.fixtures.postgres import OwnPostgresServer, PostgresServer


@pytest.fixture
def postgres_ground(frail_server: PostgresServer) -> Iterator[Ground]:
    """The server that tests may crash, behind a network that they may cut."""
    assert isinstance(frail_server, OwnPostgresServer)
    with closing(Proxy(frail_server.admin_url)) as proxy:
        yield PostgresGround(frail_server, proxy)


@pytest.fixture
def sqlite_ground(tmp_path: Path) -> Iterator[Ground]:
    """A folder, on a small disk if we may mount one."""
    with STORES["sqlite"].ground(tmp_path) as ground:
        yield ground


@pytest.fixture
def memory_ground(tmp_path: Path) -> Iterator[Ground]:
    """The memory of one process."""
    with STORES["memory"].ground(tmp_path) as ground:
        yield ground
