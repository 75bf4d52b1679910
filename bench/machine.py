"""The machine, the versions and the settings behind the figures."""

import os
import platform
import sqlite3
from pathlib import Path

import psycopg

from bench.servers import MARIADB_SETTINGS, POSTGRES_SETTINGS, Servers
from bench.unavailable import Unavailable
from tests.fixtures.mariadb import connected

WORTH_TELLING = ("shared_buffers", "max_wal_size")


def describe(servers: Servers) -> dict[str, str]:
    """Return the facts that a reader needs for a comparison."""
    with psycopg.connect(servers.postgres.admin_url) as connection:
        row = connection.execute("SHOW server_version").fetchone()
    assert row is not None
    settings = ", ".join(f"{name} {POSTGRES_SETTINGS[name]}" for name in WORTH_TELLING)
    return {
        "processor": f"{_processor()}, {os.cpu_count()} cores",
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GB",
        "system": f"{platform.system()} {platform.release()}",
        "Python": platform.python_version(),
        "PostgreSQL": f"{row[0]}, fsync and synchronous_commit on, {settings}",
        "MariaDB": _mariadb(servers),
        "SQLite": f"{sqlite3.sqlite_version}, write-ahead log",
    }


def _mariadb(servers: Servers) -> str:
    try:
        with connected(servers.mariadb.admin_url) as cursor:
            cursor.execute("SELECT VERSION(), @@innodb_flush_log_at_trx_commit")
            ((version, flush),) = cursor.fetchall()
    except Unavailable as error:
        return str(error)
    pool = MARIADB_SETTINGS["innodb-buffer-pool-size"]
    return f"{version}, innodb_flush_log_at_trx_commit {flush}, innodb_buffer_pool_size {pool}"


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()
