"""MariaDB only reads, or ends connections: calls wait for it, or connect again."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from urllib.parse import urlsplit

import pytest

from duequeue import OfferOutcome, RetryPolicy, StoreUnavailable
from duequeue.contract.faces import Face
from duequeue.contract.phrases import PATIENCE, claim, in_background
from duequeue.contract.stage import until
from tests.fixtures.mariadb import MariaDBServer, connected

CREATED, UPDATED = OfferOutcome.CREATED, OfferOutcome.UPDATED

A_MOMENT = 0.3  # seconds in which a call that has to wait does not end
# `innodb_trx` would not be refreshed for a reader that asks more often than ten times a second.
WAITING_FOR_A_LOCK = """
    SELECT CAST(variable_value AS INT) FROM information_schema.global_status
    WHERE variable_name = 'INNODB_ROW_LOCK_CURRENT_WAITS'
"""


@pytest.fixture
def app_url(frail_mariadb: MariaDBServer) -> Iterator[str]:
    """A database, and a login that may not write while the server only reads."""
    url = frail_mariadb.create_database()
    app = frail_mariadb.hand_over(url)
    yield app
    with connected(frail_mariadb.admin_url) as cursor:
        cursor.execute(f"DROP USER {urlsplit(app).username}")
    frail_mariadb.drop_database(url)


@contextmanager
def read_only(server: MariaDBServer) -> Iterator[None]:
    """A failover that leads to a server which only reads, until it is promoted."""
    with connected(server.admin_url) as cursor:
        cursor.execute("SET GLOBAL read_only = ON")
        try:
            yield
        finally:
            cursor.execute("SET GLOBAL read_only = OFF")


def test_a_read_only_server_is_retried(
    frail_mariadb: MariaDBServer, app_url: str, face: Face
) -> None:
    with face.open(app_url, "orders") as queue:
        with read_only(frail_mariadb):
            with face.open(app_url, "orders", retry=RetryPolicy.never()) as impatient:
                assert impatient.stats().total == 0
                with pytest.raises(StoreUnavailable, match="read-only"):
                    impatient.offer("a", 1)
            offering = in_background(partial(queue.offer, "a", 1))
            with pytest.raises(TimeoutError):
                offering.result(A_MOMENT)
        assert offering.result(PATIENCE) is CREATED


def test_a_connection_lost_in_a_statement(
    mariadb_server: MariaDBServer, mariadb_url: str, face: Face
) -> None:
    with face.open(mariadb_url, "orders") as queue, connected(mariadb_url) as rival:
        queue.offer("a", 1)
        rival.execute("BEGIN")
        rival.execute("SELECT 1 FROM duequeue_message WHERE `key` = 'a' FOR UPDATE")
        offering = in_background(partial(queue.offer, "a", 2))
        with connected(mariadb_url) as watch:

            def waits() -> bool:
                watch.execute(WAITING_FOR_A_LOCK)
                return watch.fetchone() == (1,)

            until(waits)
        mariadb_server.end_connections(mariadb_url)  # the lock ends with that of the rival
        assert offering.result(PATIENCE) is UPDATED


def test_connections_lost_while_idle(
    mariadb_server: MariaDBServer, mariadb_url: str, face: Face
) -> None:
    with face.open(mariadb_url, "orders") as queue:
        queue.offer("a", 1)
        for number in range(3):
            mariadb_server.end_connections(mariadb_url)
            assert queue.offer(f"b{number}", 1) is CREATED
        mariadb_server.end_connections(mariadb_url)
        assert claim(queue).ack()
