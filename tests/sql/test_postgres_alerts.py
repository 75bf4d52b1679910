"""The lines on which the queues of different processes wake each other."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from duequeue.contract.logs import messages_of
from duequeue.contract.phrases import PATIENCE
from duequeue.contract.stage import until
from duequeue.port.alerts import Answered
from duequeue.process import line as line_of_any
from duequeue.process.line import Line
from duequeue.stores.mailbox import MailboxAlerts, open_line
from duequeue.stores.sql.postgres.alerts import PostgresWire
from duequeue.stores.sql.postgres.settings import PostgresSettings

CUT_THE_SENDER = """
    SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
    WHERE datname = current_database() AND query LIKE '%pg_notify%' AND pid != pg_backend_pid()
"""


@pytest.fixture
def listener(ready_database: str) -> Iterator[psycopg.Connection]:
    """Somebody else who hears what is told."""
    with psycopg.connect(ready_database, autocommit=True) as connection:
        connection.execute("LISTEN duequeue")
        yield connection


@pytest.fixture
def one_queue(ready_database: str) -> Iterator[MailboxAlerts]:
    """A queue on the mailbox of this process."""
    queue = alerts_of_orders(ready_database)
    yield queue
    queue.close()


def alerts_of_orders(url: str) -> MailboxAlerts:
    return MailboxAlerts(PostgresWire(PostgresSettings(url)), "orders|json", lambda _: None)


def lines() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "duequeue-alerts"}


def heard(listener: psycopg.Connection) -> str:
    (notification,) = listener.notifies(timeout=PATIENCE, stop_after=1)
    return notification.payload


def test_a_queue_that_is_closed_listens_no_more(ready_database: str) -> None:
    of_others = lines()
    queue = alerts_of_orders(ready_database)
    queue.listen(1)
    (line,) = lines() - of_others
    queue.close()
    until(lambda: not line.is_alive())
    queue.listen(1)  # as a poll does that was under way
    assert lines() <= of_others


@pytest.mark.parametrize(
    "tell",
    [MailboxAlerts.notify, lambda queue, number: queue.notify(Answered(f"key {number}"))],
    ids=["a message", "a response"],
)
def test_what_could_not_be_told_is_told_on_the_next_connection(
    one_queue: MailboxAlerts,
    listener: psycopg.Connection,
    tell: Callable[[MailboxAlerts, int], None],
) -> None:
    tell(one_queue, 1111)
    assert "1111" in heard(listener)
    listener.execute(CUT_THE_SENDER)
    tell(one_queue, 2222)
    assert "2222" in heard(listener)


def test_a_line_that_stays_broken_says_so_once_and_is_opened_again(
    ready_database: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(line_of_any, "RETRY_EVERY", 0.001)
    settings, connects = PostgresSettings(ready_database), psycopg.connect
    tries: list[Exception] = []

    def connect(conninfo: str, **options: Any) -> object:
        if conninfo == settings.conninfo and 0 < len(tries) < 9:
            tries.append(psycopg.OperationalError("nobody\nthere"))
            raise tries[-1]
        return connects(conninfo, **options)

    def work(line: Line[psycopg.Connection], _: psycopg.Connection) -> None:
        if not tries:
            tries.append(UnicodeError("what was that"))
            raise tries[-1]
        line.works()
        line.closed.wait()

    monkeypatch.setattr(psycopg, "connect", connect)
    with caplog.at_level("INFO", "duequeue.postgres"):
        line = open_line(PostgresWire(settings), work)
        until(lambda: len(messages_of("duequeue.postgres", caplog)) == 2)
        line.close()
    assert len(tries) == 9
    lost, regained = messages_of("duequeue.postgres", caplog)
    assert "messages are found by polling until they do: nobody there" in lost
    assert "wake-ups between processes work again" in regained
