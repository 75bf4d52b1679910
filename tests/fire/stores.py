"""The stores that take part. A store joins by adding an entry to `STORES`.

Each has a ground, which is where one round after the other takes place, and names the faults that
apply to it.
"""

import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from duequeue import Queue
from tests.fire.callback_rounds import run_callback_round
from tests.fire.cluster_ground import cluster_ground
from tests.fire.disks import Disk, small_disk
from tests.fire.ground import Ground
from tests.fire.mariadb_ground import AlertedGround, mariadb_ground
from tests.fire.proxy import Proxy
from tests.fire.rounds import Outcome, Round, run_round
from tests.fixtures.mariadb import SETTINGS as MARIADB_SETTINGS
from tests.fixtures.mariadb import own_mariadb
from tests.fixtures.postgres import SETTINGS, OwnPostgresServer, own_server
from tests.fixtures.redis_server import (
    DATABASES,
    NOT_PERSISTENT,
    RedisServer,
    running,
    valkey_9,
)

SQLITE_MEGABYTES = 64
POSTGRES_MEGABYTES = 1024
ANSWERS_WITHIN = 60


class MemoryGround(Ground):
    """The memory of one process."""

    is_shared = False

    def fresh_url(self) -> str:
        return f"memory:{secrets.token_hex(8)}"


class SqliteGround(Ground):
    """Files in a folder, on a small disk if there is one."""

    def __init__(self, folder: Path, disk: Disk | None) -> None:
        self._folder = folder
        self._disk = disk
        self._path = folder

    def fresh_url(self) -> str:
        for old in self._folder.glob("*.db*"):
            old.unlink()
        self._path = self._folder / f"{secrets.token_hex(8)}.db"
        return f"sqlite:///{self._path}"

    @property
    def disk(self) -> Disk | None:
        return self._disk

    @contextmanager
    def hold(self) -> Iterator[None]:
        with closing(sqlite3.connect(self._path, timeout=5, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield
            connection.execute("ROLLBACK")


class PostgresGround(Ground):
    """A server of our own, behind a network of our own."""

    has_network = True

    def __init__(self, server: OwnPostgresServer, proxy: Proxy, disk: Disk | None = None) -> None:
        self._server = server
        self._proxy = proxy
        self._disk = disk
        self._url = ""

    def fresh_url(self) -> str:
        self._url = self._server.create_database()
        Queue.open(self._url, "the first").close()
        return self._proxy.through(self._url)

    @property
    def disk(self) -> Disk | None:
        return self._disk

    @property
    def proxy(self) -> Proxy:
        return self._proxy

    def crash(self) -> None:
        self._server.restart("immediate")

    def revive(self) -> None:
        """Wait for a server that recovers, and start one that could not for lack of space."""
        for _ in range(ANSWERS_WITHIN):
            if not self._server.is_running():
                self._server.start()
            try:
                psycopg.connect(self._server.admin_url, connect_timeout=1).close()
            except psycopg.OperationalError:
                time.sleep(1)
            else:
                return
        raise RuntimeError("the server does not answer any more")

    @contextmanager
    def hold(self) -> Iterator[None]:
        # An actor that is alone on its queue has other keys, because it expects every message.
        statement = """
            SELECT 1 FROM duequeue_message WHERE key LIKE 'k%' OR key LIKE 'beat/%'
            FOR UPDATE SKIP LOCKED
        """
        with psycopg.connect(self._url) as connection:
            connection.execute(statement)
            yield
            connection.rollback()


class RedisGround(Ground):
    """A server of our own, behind a network of our own."""

    has_network = True

    def __init__(self, server: RedisServer, proxy: Proxy) -> None:
        self._server = server
        self._proxy = proxy

    def fresh_url(self) -> str:
        return self._proxy.through(self._server.fresh_url())

    @property
    def proxy(self) -> Proxy:
        return self._proxy

    def flush(self) -> None:
        self._server.ask("FLUSHALL")

    def crash(self) -> None:
        self._server.kill()
        self._server.start()


@contextmanager
def memory_ground(folder: Path) -> Iterator[Ground]:
    yield MemoryGround()


@contextmanager
def sqlite_ground(folder: Path) -> Iterator[Ground]:
    with small_disk(folder / "disk", SQLITE_MEGABYTES) as disk:
        yield SqliteGround(folder / "disk", disk)


@contextmanager
def postgres_ground(folder: Path) -> Iterator[Ground]:
    # The server runs as another user if we are root, and has to reach its folder.
    folder.mkdir(parents=True, exist_ok=True)
    folder.parent.chmod(0o755)
    folder.chmod(0o755)
    with (
        small_disk(folder / "disk", POSTGRES_MEGABYTES) as disk,
        own_server(SETTINGS, disk.folder if disk else None) as server,
        closing(Proxy(server.admin_url)) as proxy,
    ):
        yield PostgresGround(server, proxy, disk)


@contextmanager
def redis_ground(folder: Path) -> Iterator[Ground]:
    # If the disk is slow, a server that is synchronized every second writes up to two seconds late.
    options = ("--appendonly", "yes", "--appendfsync", "always", "--databases", str(DATABASES))
    with (
        running(valkey_9(), *options) as server,
        closing(Proxy(server.url())) as proxy,
    ):
        yield RedisGround(server, proxy)


@contextmanager
def alerted_ground(folder: Path) -> Iterator[Ground]:
    """MariaDB, and a Redis that keeps nothing on its disk."""
    with (
        own_mariadb(MARIADB_SETTINGS) as server,
        closing(Proxy(server.admin_url)) as proxy,
        running(valkey_9(), *NOT_PERSISTENT) as redis,
        closing(Proxy(redis.url())) as line,
    ):
        yield AlertedGround(server, proxy, RedisGround(redis, line))


@dataclass(frozen=True)
class StoreEntry:
    """How to make the ground for a store, the names of its faults, and what a round is there."""

    ground: Callable[[Path], AbstractContextManager[Ground]]
    faults: tuple[str, ...]
    run: Callable[[Ground, Round, Path], Outcome] = run_round


STORES: Mapping[str, StoreEntry] = {
    "memory": StoreEntry(memory_ground, ("pause", "clock")),
    "sqlite": StoreEntry(sqlite_ground, ("kill", "pause", "clock", "lock", "disk full")),
    "postgres": StoreEntry(
        postgres_ground,
        ("kill", "pause", "clock", "lock", "crash", "cut", "black hole", "disk full"),
    ),
    "mariadb": StoreEntry(
        mariadb_ground, ("kill", "pause", "clock", "lock", "crash", "cut", "black hole")
    ),
    "mariadb+redis": StoreEntry(
        alerted_ground,
        (
            *("alerts flush", "alerts crash", "alerts cut", "alerts black hole"),
            *("kill", "lock", "crash", "cut"),
        ),
    ),
    "redis": StoreEntry(redis_ground, ("kill", "pause", "clock", "crash", "cut", "black hole")),
    "redis cluster": StoreEntry(cluster_ground, ("failover", "kill", "pause", "clock")),
    "callbacks": StoreEntry(
        postgres_ground,
        ("kill push", "pause push", "kill endpoint", "pause endpoint"),
        run_callback_round,
    ),
}
