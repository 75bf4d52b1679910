"""What connections to PostgreSQL are opened with."""

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from duequeue import Queue
from duequeue.contract.faces import QueueFace
from duequeue.contract.phrases import claim
from duequeue.stores.sql.postgres.settings import PostgresSettings
from tests.fixtures.postgres import PostgresServer

WHO = "SELECT DISTINCT application_name FROM pg_stat_activity WHERE datname = current_database()"


def test_a_silent_server_counts_as_gone_sooner_than_the_system_says() -> None:
    url = "postgresql://somebody@127.0.0.1/orders"
    assert PostgresSettings(url).connection_arguments["keepalives_idle"] == 30
    patient = PostgresSettings(f"{url}?keepalives_idle=300&connect_timeout=60").connection_arguments
    assert "keepalives_idle" not in patient
    assert "connect_timeout" not in patient
    assert patient["keepalives_count"] == 3


def test_an_application_may_have_a_name_of_its_own(ready_database: str) -> None:
    with (
        Queue.open(f"{ready_database}?application_name=shop", "orders"),
        psycopg.connect(ready_database, application_name="shop") as connection,
    ):
        assert connection.execute(WHO).fetchall() == [("shop",)]


def test_a_database_that_minds_no_encoding(postgres_server: PostgresServer) -> None:
    url = postgres_server.create_database("SQL_ASCII")
    for number in range(2):  # it must know its tables again, too
        with Queue.open(url, "orders") as queue:
            queue.offer(f"größe-{number}", {"ä": "ö"}, headers={"ü": "ß"})
            delivery = queue.try_poll()
            assert delivery is not None
            assert (delivery.key, delivery.payload) == (f"größe-{number}", {"ä": "ö"})
            assert delivery.headers == {"ü": "ß"}
    postgres_server.drop_database(url)


@pytest.mark.parametrize("store", ["postgres"], indirect=True)
def test_the_password_is_not_in_a_repr(queue: QueueFace, postgres_server: PostgresServer) -> None:
    queue.offer("a", 1)
    delivery = claim(queue)
    assert postgres_server.password
    for shown in (repr(queue), str(queue), repr(delivery), str(delivery)):
        assert postgres_server.password not in shown


def test_a_connection_holds_on_to_no_large_payload(postgres_url: str) -> None:
    with Queue.open(f"{postgres_url}?pool_size=1", "orders", codec=bytes) as queue, traced():
        before, _ = tracemalloc.get_traced_memory()
        queue.offer("a", b"x" * 1_000_000)
        after, most = tracemalloc.get_traced_memory()
        assert most - before >= 1_000_000
        assert after - before < 500_000


@contextmanager
def traced() -> Iterator[None]:
    """Count the memory that is taken inside the block."""
    tracemalloc.start()
    try:
        yield
    finally:
        tracemalloc.stop()
