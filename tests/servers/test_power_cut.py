"""The machine loses its power under load; what was acknowledged is there when it is back."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from duequeue import Queue
from tests.fixtures.mariadb import SYNCED, find_mariadb, own_mariadb
from tests.fixtures.postgres import SETTINGS, end_at_once, own_server
from tests.fixtures.volatile_disk import VolatileDisk, volatile_disk
from tests.servers.load import Damage, doomed_load, under_load

NOTHING = Damage(set(), set())


@pytest.fixture
def disk() -> Iterator[VolatileDisk]:
    with volatile_disk() as disk:
        yield disk


def freeze(processes: "list[psutil.Process]") -> None:
    """Stop the processes where they are: without power, none reports that its disk has failed."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.suspend()


def damage_on_sqlite(disk: VolatileDisk, folder: Path, synchronous: str) -> Damage:
    """Cut the power of a machine with everything on it."""
    folder.mkdir(exist_ok=True)
    url = f"sqlite:///{disk.folder / folder.name}.db?synchronous={synchronous}"
    Queue.open(url, "orders").close()
    disk.sync()
    with doomed_load(url, folder) as load:
        disk.cut_power()
        load.kill()
    disk.restore_power()
    return load.damage(url)


def test_on_sqlite_nothing_acknowledged_is_lost(disk: VolatileDisk, tmp_path: Path) -> None:
    assert damage_on_sqlite(disk, tmp_path, "full") == NOTHING


def test_less_durable_sqlite_loses_the_last_moments(disk: VolatileDisk, tmp_path: Path) -> None:
    """The guide says so, and it shows that this disk does forget what was not synced.

    If SQLite has just moved its log into the file, nothing is lost, so a few cuts are made.
    """
    assert any(
        damage_on_sqlite(disk, tmp_path / str(number), "normal").lost_offers for number in range(5)
    )


def test_on_postgres_nothing_acknowledged_is_lost(disk: VolatileDisk, tmp_path: Path) -> None:
    """The server's machine loses its power, and the clients go on when it is back."""
    with own_server({**SETTINGS, "fsync": "on"}, disk.folder) as server:
        disk.sync()  # initdb has not synced its files
        with under_load(server.url(), tmp_path) as load:
            processes = server.processes()
            freeze(processes)
            disk.cut_power()
            end_at_once(processes)
            disk.restore_power()
            server.start()
            load.go_on(1)
        assert load.damage(server.admin_url) == NOTHING


def test_on_mariadb_nothing_acknowledged_is_lost(disk: VolatileDisk, tmp_path: Path) -> None:
    find_mariadb()
    with own_mariadb(SYNCED, disk.folder, syncs=True) as server:
        url = server.create_database()
        disk.sync()
        with under_load(url, tmp_path) as load:
            process = server.process()
            freeze([process])
            disk.cut_power()
            server.kill()
            disk.restore_power()
            server.start()
            load.go_on(1)
        assert load.damage(url) == NOTHING
