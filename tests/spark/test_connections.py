"""How many connections a read or a write takes, and how it ends if it gets none."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from time import monotonic
from urllib.parse import urlsplit

import psycopg
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from duequeue import Queue, StoreUnavailable
from duequeue.contract.stage import until
from duequeue.spark import OfferCounts, offer
from duequeue.spark.open_bulk import OpenBulk
from duequeue.spark.options import Options, parse
from duequeue.spark.session import activate
from duequeue.spark.write_places import FIRST_WAIT_SECONDS, open_for_writing
from tests.fixtures.postgres import PostgresServer
from tests.race.together import PATIENCE
from tests.spark.frames import messages
from tests.spark.test_batch_write import save

SESSIONS = "SELECT sessions FROM pg_stat_database WHERE datname = %s"


@pytest.fixture
def on_postgres(postgres_server: PostgresServer) -> str:
    """An empty queue on PostgreSQL."""
    url = postgres_server.create_database()
    Queue.open(url, "orders").close()
    return url


def sessions(server: PostgresServer, url: str) -> int:
    """Return how many connections a database has had so far."""
    with psycopg.connect(server.admin_url) as connection:
        (found,) = connection.execute(SESSIONS, [urlsplit(url).path[1:]]).fetchall()
        return int(found[0])


def limited(url: str) -> Options:
    """Return the options of a write to two connections at most."""
    return parse({"url": url, "queue": "orders", "maxConnections": "2"})


@contextmanager
def hold_places(url: str, count: int) -> Iterator[None]:
    """Hold the first places for writers of the queue, on one connection."""
    with OpenBulk(limited(url)) as bulk:
        first = 603455129 + bulk.store.kind_id
    with psycopg.connect(url) as connection:
        for place in range(1, count + 1):
            connection.execute("SELECT pg_advisory_lock(%s::int, %s)", [first, place])
        yield


def test_a_partition_takes_one_connection_and_an_empty_one_takes_none(
    spark: SparkSession, postgres_server: PostgresServer, on_postgres: str
) -> None:
    numbers = spark.range(0, 2, 1, numPartitions=6)
    frame = numbers.selectExpr("string(id) AS key", "'1' AS payload", "id AS due_at")
    before = sessions(postgres_server, on_postgres)
    save(frame, on_postgres)
    assert sessions(postgres_server, on_postgres) - before == 2 + 1, "the driver connects once"


def test_a_short_read_takes_two_connections(
    spark: SparkSession, postgres_server: PostgresServer, on_postgres: str
) -> None:
    backlog = spark.read.format("duequeue").options(url=on_postgres, queue="orders").load()
    before = sessions(postgres_server, on_postgres)
    assert backlog.collect() == []
    assert sessions(postgres_server, on_postgres) - before == 2, "one to plan, one to read"


def test_a_write_stays_within_max_connections(spark: SparkSession, on_postgres: str) -> None:
    frame = messages(spark, 1000).repartition(20)
    partitions = spark.sparkContext.statusTracker()
    spark.sparkContext.setJobGroup("limited", "a write")
    try:
        done = offer(frame, url=on_postgres, queue="orders", maxConnections=3)
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
    assert done == OfferCounts(created=1000)
    last = partitions.getJobInfo(max(partitions.getJobIdsForGroup("limited")))
    assert last is not None
    written = partitions.getStageInfo(max(last.stageIds))
    assert written is not None
    assert written.numTasks == 3


def test_an_unreachable_server_is_reported_in_seconds(spark: SparkSession) -> None:
    url = "postgresql://127.0.0.1:1/none"
    frame = messages(spark, 1)
    began = monotonic()
    with pytest.raises(StoreUnavailable):
        offer(frame, url=url, queue="orders")
    assert monotonic() - began < 25  # it would otherwise try for thirty seconds


def test_a_plain_write_to_an_unreachable_server_fails_before_it_begins(
    spark: SparkSession,
) -> None:
    url = "postgresql://127.0.0.1:1/none"
    refused = pytest.raises(
        PySparkException, match=r"PostgreSQL at 127\.0\.0\.1:\d+/none: .*refused"
    )
    spark.sparkContext.setJobGroup("unreachable", "a write to nowhere")
    try:
        with refused:
            save(messages(spark, 1), url)
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
    begun = spark.sparkContext.statusTracker().getJobIdsForGroup("unreachable")
    assert len(begun) == 0, "a partition waits for half a minute"


def test_a_plain_write_waits_for_a_place(
    spark: SparkSession, postgres_server: PostgresServer, on_postgres: str
) -> None:
    """Others hold both places, and give them up in the end."""

    def write() -> None:
        activate(spark)
        save(messages(spark, 10).coalesce(1), on_postgres, maxConnections="2")

    with ThreadPoolExecutor(1) as thread:
        with hold_places(on_postgres, 2):
            before = sessions(postgres_server, on_postgres)
            writing = thread.submit(write)
            until(lambda: sessions(postgres_server, on_postgres) >= before + 1 + 3)
            assert not writing.done(), "it connects again and again, but finds no place"
        writing.result(timeout=PATIENCE)
    with Queue.open(on_postgres, "orders") as queue:
        assert queue.stats().due == 10


def test_places_are_numbered(on_postgres: str) -> None:
    with hold_places(on_postgres, 2), OpenBulk(limited(on_postgres)) as bulk:
        assert not bulk.run(partial(bulk.store.take_write_place, 2))
        assert bulk.run(partial(bulk.store.take_write_place, 3))


def test_the_first_connections_of_many_partitions_are_spread(on_postgres: str) -> None:
    pauses: list[float] = []
    for _ in range(20):
        open_for_writing(limited(on_postgres), pauses.append).close()
    assert len(set(pauses)) == 20
    assert all(0 <= pause <= FIRST_WAIT_SECONDS for pause in pauses)
    open_for_writing(parse({"url": on_postgres, "queue": "orders"}), pauses.append).close()
    assert len(pauses) == 20, "without a limit, no partition waits"


def test_an_error_while_a_place_is_taken_closes_the_connection(
    on_postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[OpenBulk] = []

    def fail(*_: object) -> None:
        raise StoreUnavailable("the server is shutting down")

    def close(bulk: OpenBulk) -> None:
        closed.append(bulk)
        really_close(bulk)

    really_close = OpenBulk.close
    monkeypatch.setattr(OpenBulk, "run", fail)
    monkeypatch.setattr(OpenBulk, "close", close)
    with pytest.raises(StoreUnavailable):
        open_for_writing(limited(on_postgres), lambda _: None)
    assert len(closed) == 1


def test_behind_a_pooler_connections_are_limited_there() -> None:
    given = {"url": "postgresql://host/db?pooler=transaction", "queue": "orders"}
    with pytest.raises(ValueError, match="'maxConnections' cannot be used behind a pooler"):
        parse({**given, "maxConnections": 2})
