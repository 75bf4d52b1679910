"""Ten processes open an empty database at once: the tables are made once, for all of them."""

import sqlite3
import threading
from functools import partial
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from duequeue import OfferOutcome, Queue
from duequeue.contract.phrases import SECOND
from duequeue.contract.stage import until
from duequeue.stores.redis.keys import KINDS as KINDS_OF_REDIS
from duequeue.stores.sql.migrations import load_migrations
from tests.fixtures.redis_server import RedisServer
from tests.race.crew import Crew
from tests.race.parts import open_and_offer, open_queue
from tests.race.watching import until_one

PROCESSES = 10
KEYS = [f"process-{number}" for number in range(PROCESSES)]
APPLIED = "SELECT number, name, checksum FROM duequeue_migration ORDER BY number"
ALONE = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
KINDS = "SELECT count(*) FROM duequeue_kind"


def open_at_once(url: str, crew: Crew) -> None:
    outcomes = crew.together([partial(open_and_offer, url, key) for key in KEYS])
    assert outcomes == [OfferOutcome.CREATED] * PROCESSES
    with open_queue(url) as queue:
        assert sorted(delivery.key for delivery in queue.try_poll_many(99)) == sorted(KEYS)


def known_migrations(dialect: str) -> list[tuple[int, str, str]]:
    return [(each.number, each.name, each.checksum) for each in load_migrations(dialect)]


def test_on_sqlite(tmp_path: Path, crew: Crew) -> None:
    path = tmp_path / "queue.db"
    open_at_once(f"sqlite:///{path}", crew)
    connection = sqlite3.connect(path)
    assert connection.execute(APPLIED).fetchall() == known_migrations("sqlite")
    assert connection.execute(KINDS).fetchone() == (1,)
    connection.close()


@pytest.mark.parametrize("pooler", ["session", "transaction"])
@pytest.mark.parametrize("isolation", ["read committed", "repeatable read", "serializable"])
def test_on_postgres(postgres_url: str, crew: Crew, isolation: str, pooler: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(
            sql.SQL("ALTER DATABASE {} SET default_transaction_isolation = {}").format(
                sql.Identifier(connection.info.dbname), isolation
            )
        )
        open_at_once(f"{postgres_url}?pooler={pooler}", crew)
        assert connection.execute(APPLIED).fetchall() == known_migrations("postgres")
        assert connection.execute(KINDS).fetchone() == (1,)


def test_on_redis(redis_server: RedisServer, redis_url: str, crew: Crew) -> None:
    open_at_once(redis_url, crew)
    database = int(redis_url.rpartition("/")[2])
    names = redis_server.ask("HKEYS", KINDS_OF_REDIS, database=database)
    assert sorted(names) == [b"", b"orders|json"]  # the first one is the layout


def test_opening_again_and_again_leaves_nothing_behind(postgres_url: str) -> None:
    open_again_and_again(postgres_url)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        until_one(connection, ALONE)


def test_opening_again_and_again_leaves_no_connection_to_redis(
    redis_server: RedisServer, redis_url: str
) -> None:
    database = int(redis_url.rpartition("/")[2])

    def connections() -> int:
        listed: str = redis_server.ask("CLIENT", "LIST", database=database + 1).decode()
        return listed.count(f" db={database} ")

    open_again_and_again(redis_url)
    until(lambda: connections() == 0)


def open_again_and_again(url: str) -> None:
    """Open, use and close a queue many times, and see that no thread is left."""
    with Queue.open(url, "orders"):
        pass
    threads_before, lines_before = threading.active_count(), count_lines()
    for number in range(10):
        with Queue.open(url, "orders") as queue:
            queue.offer("a", number)
            assert queue.poll(timeout=SECOND) is not None
            assert queue.poll(timeout=SECOND / 100) is None
            until(lambda: count_lines() <= lines_before + 2)  # one that sends, one that hears
    until(lambda: threading.active_count() <= threads_before)  # a thread outlives its connection


def count_lines() -> int:
    """Count the threads that send or hear wake-ups; those of closed queues end soon."""
    return sum(each.name == "duequeue-alerts" for each in threading.enumerate())
