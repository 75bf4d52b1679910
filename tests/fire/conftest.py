"""The grounds on which rounds take place."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.fire.ground import Ground
from tests.fire.mariadb_ground import AlertedGround, MariadbGround
from tests.fire.proxy import Proxy
from tests.fire.stores import STORES, PostgresGround, RedisGround
from tests.fixtures.mariadb import MariaDBServer, OwnMariaDBServer
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


@pytest.fixture
def redis_ground(tmp_path: Path) -> Iterator[Ground]:
    """A server that writes every change to its disk, behind a network that tests may cut."""
    with STORES["redis"].ground(tmp_path) as ground:
        yield ground


@pytest.fixture
def cluster_ground(tmp_path: Path) -> Iterator[Ground]:
    """A cluster in which each primary has a replica."""
    with STORES["redis cluster"].ground(tmp_path) as ground:
        yield ground


@pytest.fixture
def alerted_ground(frail_mariadb: MariaDBServer, redis_ground: RedisGround) -> Iterator[Ground]:
    """MariaDB, and a Redis through which processes wake each other, each behind a network."""
    assert isinstance(frail_mariadb, OwnMariaDBServer)
    with closing(Proxy(frail_mariadb.admin_url)) as proxy:
        yield AlertedGround(frail_mariadb, proxy, redis_ground)


@pytest.fixture
def mariadb_ground(frail_mariadb: MariaDBServer) -> Iterator[Ground]:
    """The server that tests may crash, behind a network that they may cut."""
    assert isinstance(frail_mariadb, OwnMariaDBServer)
    with closing(Proxy(frail_mariadb.admin_url)) as proxy:
        yield MariadbGround(frail_mariadb, proxy)
