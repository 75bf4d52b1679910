"""A server is killed again and again under load; after each restart it keeps what it promised."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import randint

import pytest

from tests.fixtures.mariadb import SYNCED, OwnMariaDBServer, find_mariadb, own_mariadb
from tests.fixtures.postgres import SETTINGS, OwnPostgresServer, own_server
from tests.servers.load import Damage, under_load

KILLS = 3
LONGEST = 30


@contextmanager
def running(store: str) -> Iterator[OwnPostgresServer | OwnMariaDBServer]:
    if store == "postgres":
        with own_server({**SETTINGS, "fsync": "on"}) as postgres:
            yield postgres
        return
    find_mariadb()
    with own_mariadb(SYNCED, syncs=True) as mariadb:
        url = mariadb.create_database()
        yield replace(mariadb, admin_url=url)


@pytest.mark.parametrize("store", ["postgres", "mariadb"])
def test_nothing_acknowledged_is_lost_and_nothing_acked_is_back(store: str, tmp_path: Path) -> None:
    with running(store) as server:
        with under_load(server.admin_url, tmp_path) as load:
            for _ in range(KILLS):
                load.go_on(randint(1, LONGEST))  # noqa: S311 - no secret is drawn
                server.kill()
                server.start()
            load.go_on(1)
        assert load.damage(server.admin_url) == Damage(set(), set())
