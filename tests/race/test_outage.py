"""The server goes away: calls wait for it within their budget, then say what is wrong."""

import logging
import socket
import traceback
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from time import monotonic
from typing import Any

import psycopg
import pytest
from psycopg import sql

from duequeue import ManualClock, OfferOutcome, RetryPolicy, StoreUnavailable
from duequeue.contract.faces import Face
from duequeue.contract.phrases import PATIENCE, SECOND, claim, in_background, keys_of
from duequeue.stores.sql.mariadb.errors import DRIVER_ERRORS as MARIADB_ERRORS
from tests.fixtures.mariadb import MariaDBServer
from tests.fixtures.postgres import PostgresServer, StopMode
from tests.race.watching import WAITING_FOR_A_LOCK, until_one

CREATED, UPDATED = OfferOutcome.CREATED, OfferOutcome.UPDATED

BUDGET = SECOND
SLACK = 5 * SECOND  # beyond the budget, for the try that is under way when it ends
DRIVER_ERRORS: tuple[type[Exception], ...] = (psycopg.OperationalError, *MARIADB_ERRORS)
A_MOMENT = 0.3  # seconds in which a call that has to wait does not end


@contextmanager
def within_budget() -> Iterator[None]:
    began = monotonic()
    yield
    assert monotonic() - began < (BUDGET + SLACK).total_seconds()


def everything_said(error: BaseException, *others: object) -> str:
    """All that a log or a terminal could show of an error and of these."""
    words = [*traceback.format_exception(error), str(error), repr(error), *map(repr, others)]
    while error.__cause__ is not None:
        error = error.__cause__
        words += [str(error), repr(error)]
    return "\n".join(words)


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_queue_outlives_a_restart(
    stoppable: PostgresServer | MariaDBServer, frail_url: str, face: Face, mode: StopMode
) -> None:
    with face.open(frail_url, "orders") as queue:
        queue.offer("before", 1)
        delivery = claim(queue)
        stoppable.restart(mode)
        assert queue.offer("after", 1) is CREATED
        acked = delivery.ack()
        found = keys_of(queue.try_poll_many(10) + queue.try_poll_many(10))
        # Claims do not wait for the disk: a crash may undo one, and the message comes again.
        assert sorted(found) == (["after"] if acked else ["after", "before"])
        assert acked or mode == "immediate"


def test_a_call_waits_for_the_server(
    stoppable: PostgresServer | MariaDBServer, frail_url: str, face: Face
) -> None:
    with face.open(frail_url, "orders") as queue:
        with stoppable.stopped():
            offering = in_background(partial(queue.offer, "a", 1))
            with pytest.raises(TimeoutError):
                offering.result(A_MOMENT)
        assert offering.result(PATIENCE) is CREATED


def test_a_waiting_poll_outlives_a_restart(
    stoppable: PostgresServer | MariaDBServer, frail_url: str, face: Face
) -> None:
    with face.open(frail_url, "orders", poll_interval=SECOND / 10) as queue:
        polling = in_background(queue.poll)
        with pytest.raises(TimeoutError):
            polling.result(A_MOMENT)
        stoppable.restart()
        queue.offer("a", 1)
        delivery = polling.result(PATIENCE)
        assert delivery is not None
        assert delivery.ack()


def test_a_server_that_is_gone_is_named_and_its_password_is_not(
    stoppable: PostgresServer | MariaDBServer,
    frail_url: str,
    face: Face,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    options: dict[str, Any] = {"retry": RetryPolicy(budget=BUDGET)}
    with face.open(frail_url, "orders", **options) as queue:
        queue.offer("a", 1)
        with stoppable.stopped():
            with within_budget(), pytest.raises(StoreUnavailable) as of_a_call:
                queue.offer("b", 1)
            with within_budget(), pytest.raises(StoreUnavailable) as of_opening:
                face.open(frail_url, "orders", **options)
        for raised in (of_a_call, of_opening):
            host_and_port = frail_url.rpartition("@")[2].partition("/")[0]
            assert host_and_port in str(raised.value)
            assert isinstance(raised.value.__cause__, DRIVER_ERRORS)
            assert stoppable.password not in everything_said(raised.value, queue)
    assert stoppable.password not in caplog.text


@pytest.mark.parametrize("scheme", ["postgresql", "mariadb"])
def test_a_server_that_never_answers(face: Face, scheme: str) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        port = silent.getsockname()[1]
        url = f"{scheme}://somebody:hunter2@127.0.0.1:{port}/db?connect_timeout=2"
        opening = in_background(partial(face.open, url, "orders", retry=RetryPolicy(budget=BUDGET)))
        with within_budget(), pytest.raises(StoreUnavailable, match=f"127.0.0.1:{port}") as raised:
            opening.result(PATIENCE)
    assert "hunter2" not in everything_said(raised.value)


@contextmanager
def read_only(url: str) -> Iterator[None]:
    """A failover that leads to a server which only reads, until it is promoted."""
    with psycopg.connect(url, autocommit=True) as connection:
        database = sql.Identifier(connection.info.dbname)
        setting = sql.SQL("ALTER DATABASE {} SET default_transaction_read_only = on")
        connection.execute(setting.format(database))
        yield
        connection.execute(sql.SQL("ALTER DATABASE {} RESET ALL").format(database))


def test_a_read_only_server_is_retried(postgres_url: str, face: Face, clock: ManualClock) -> None:
    face.open(postgres_url, "orders", clock=clock).close()
    with read_only(postgres_url):
        with face.open(postgres_url, "orders", retry=RetryPolicy.never()) as impatient:
            assert impatient.stats().total == 0
            with pytest.raises(StoreUnavailable, match="read-only transaction"):
                impatient.offer("a", 1)
        queue = face.open(postgres_url, "orders", clock=clock)
        offering = in_background(partial(queue.offer, "a", 1))
        with pytest.raises(TimeoutError):
            offering.result(A_MOMENT)
    assert offering.result(PATIENCE) is CREATED
    queue.close()


TERMINATE = """
    SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity
    WHERE datname = current_database() AND pid != pg_backend_pid()
"""


def test_a_connection_lost_in_a_statement(postgres_url: str, face: Face) -> None:
    with (
        face.open(postgres_url, "orders") as queue,
        psycopg.connect(postgres_url, autocommit=True) as watch,
    ):
        queue.offer("a", 1)
        with watch.transaction():
            watch.execute("SELECT 1 FROM duequeue_message WHERE key = 'a' FOR UPDATE")
            offering = in_background(partial(queue.offer, "a", 2))
            until_one(watch, WAITING_FOR_A_LOCK)
            watch.execute(TERMINATE)
        assert offering.result(PATIENCE) is UPDATED


def test_connections_lost_while_idle(postgres_url: str, face: Face) -> None:
    with (
        face.open(postgres_url, "orders") as queue,
        psycopg.connect(postgres_url, autocommit=True) as watch,
    ):
        queue.offer("a", 1)
        for number in range(3):
            watch.execute(TERMINATE)
            assert queue.offer(f"b{number}", 1) is CREATED
        watch.execute(TERMINATE)
        assert claim(queue).ack()
