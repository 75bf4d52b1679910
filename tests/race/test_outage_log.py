"""A server goes away under idle and busy consumers and a cron: what they write to the log."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import ExitStack
from threading import Event
from typing import Any, TypeAlias

import pytest

from duequeue.contract.faces import AsyncFace, Blocking, Face, LoopThread
from duequeue.contract.phrases import HOUR, PATIENCE, SECOND
from duequeue.contract.stage import until
from duequeue.process import contact
from tests.fixtures.mariadb import MariaDBServer
from tests.fixtures.postgres import PostgresServer
from tests.fixtures.redis_server import RedisServer

Server: TypeAlias = PostgresServer | MariaDBServer | RedisServer

LOST = "the store is unavailable, and calls wait for it: "
STILL_LOST = "the store has been unavailable for "
BACK = " is available again, after "
# The keeper tries to extend it during the outage, which ends before the lease does.
LEASE = 15 * SECOND


@pytest.fixture(params=["frail_server", "frail_mariadb", "frail_redis"])
def stoppable(request: pytest.FixtureRequest) -> Server:
    """Each server that may be stopped."""
    server: Server = request.getfixturevalue(request.param)
    return server


@pytest.fixture
def frail_url(stoppable: Server) -> Iterator[str]:
    """A database on it."""
    if isinstance(stoppable, RedisServer):
        yield stoppable.fresh_url()
        stoppable.ask("FLUSHALL")
    else:
        url = stoppable.create_database()
        yield url
        stoppable.drop_database(url)


def test_an_outage_is_logged_once_for_all_queues_consumers_and_connections(
    stoppable: Server,
    frail_url: str,
    face: Face,
    loop_thread: LoopThread,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(contact, "LOG_EVERY_SECONDS", 1.0)
    running, goes_on = Event(), Event()

    def handle(_: Any) -> None:
        running.set()
        goes_on.wait(PATIENCE)

    async def handle_awaiting(delivery: Any) -> None:
        await asyncio.to_thread(handle, delivery)

    def lines(words: str) -> list[str]:
        return [each.getMessage() for each in ours(caplog) if words in each.getMessage()]

    with ExitStack() as open_things:
        for name in ("orders", "mails", "reports"):
            opened = face.open(frail_url, name, lease=LEASE, poll_interval=SECOND / 4)
            queue: Any = open_things.enter_context(opened)
            if isinstance(face, AsyncFace):
                consumer: Any = Blocking(queue.consume(handle_awaiting), loop_thread)
            else:
                consumer = queue.consume(handle)
            open_things.enter_context(consumer)
        queue = open_things.enter_context(face.open(frail_url, "orders"))
        queue.cron.install_periodic_tick("tick", HOUR, 1)
        queue.offer("long", 1)
        assert running.wait(PATIENCE)
        with caplog.at_level(logging.INFO):
            with stoppable.stopped():
                until(lambda: len(lines(STILL_LOST)) >= 5)
            until(lambda: len(lines(BACK)) == 1)
            queue.offer("later", 1)
        goes_on.set()
    logged = ours(caplog)
    assert [each for each in logged if each.exc_info or "\n" in each.getMessage()] == []
    words = [each.getMessage() for each in logged]
    assert [LOST in words[0], len(lines(LOST)), BACK in words[-1]] == [True, 1, True]
    assert len(words) == 2 + len(lines(STILL_LOST)), words


def ours(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    """What DueQueue and its driver have logged."""
    return [
        each
        for each in caplog.records
        if each.name.split(".")[0] in {"duequeue", "psycopg", "pymysql", "asyncmy", "redis"}
    ]
