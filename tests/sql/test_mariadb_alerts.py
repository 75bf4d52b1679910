"""The lines on which the queues of different processes wake each other on MariaDB."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any

import pytest
from pymysql.cursors import Cursor

from duequeue.contract.phrases import PATIENCE
from duequeue.contract.stage import until
from duequeue.process import line as line_of_any
from duequeue.stores.mailbox import Mailbox, MailboxAlerts
from duequeue.stores.sql.mariadb import alerts
from duequeue.stores.sql.mariadb.alerts import MariadbWire, lock_names
from duequeue.stores.sql.mariadb.connections import MariadbConnection
from duequeue.stores.sql.mariadb.replies import ServerReply
from duequeue.stores.sql.mariadb.settings import MariadbSettings
from tests.fixtures.mariadb import connected

Bells = SimpleQueue[str]
ASLEEP = """
    SELECT id FROM information_schema.processlist
    WHERE db = DATABASE() AND state = 'User sleep'
"""
IDLE = """
    SELECT id FROM information_schema.processlist
    WHERE db = DATABASE() AND command = 'Sleep' AND id != CONNECTION_ID()
"""


@pytest.fixture
def short_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a line that sleeps notice soon what has changed."""
    monkeypatch.setattr(alerts, "SLEEP_SECONDS", 0.05)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements that the server has answered."""
    texts: list[str] = []
    send = MariadbConnection.send

    def note(connection: MariadbConnection, statements: Sequence[str]) -> list[ServerReply]:
        replies = send(connection, statements)
        texts.extend(statements)
        return replies

    monkeypatch.setattr(MariadbConnection, "send", note)
    return texts


@pytest.fixture
def cursor(ready_mariadb: str) -> Iterator[Cursor]:
    """A connection of another process."""
    with connected(ready_mariadb) as cursor:
        yield cursor


@contextmanager
def waiting(url: str, kind: str, bells: Bells) -> Iterator[MailboxAlerts]:
    """A queue that waits for messages, and notes when it is to look for them."""
    wire = MariadbWire(MariadbSettings.from_url(url))
    queue = MailboxAlerts(wire, kind, lambda _: bells.put(kind))
    try:
        queue.listen(1)
        yield queue
    finally:
        queue.close()


def locks_of(url: str, kind: str) -> list[str]:
    return lock_names(MariadbSettings.from_url(url).address.database, kind)


def is_used(cursor: Cursor, lock: str) -> bool:
    cursor.execute("SELECT IS_USED_LOCK(%s)", (lock,))
    found: Any = cursor.fetchone()
    return bool(found != (None,))


def next_of(kind: str, bells: Bells) -> str:
    """Return a kind once its queue is to look; others may have to look meanwhile."""
    while bells.get(timeout=PATIENCE) != kind:
        pass
    return kind


@pytest.mark.usefixtures("short_sleeps")
def test_a_queue_that_waits_later_looks_again_when_the_others_can_wake_it(
    ready_mariadb: str, cursor: Cursor
) -> None:
    """Its first look was before that, so it may have missed what was offered since."""
    bells: Bells = SimpleQueue()
    with waiting(ready_mariadb, "first", bells):
        assert next_of("first", bells)
        with waiting(ready_mariadb, "second", bells):
            assert next_of("second", bells)
            assert is_used(cursor, locks_of(ready_mariadb, "second")[0])


@pytest.mark.usefixtures("short_sleeps")
def test_a_queue_that_is_closed_leaves_its_lock_to_others(
    ready_mariadb: str, cursor: Cursor
) -> None:
    bells: Bells = SimpleQueue()
    with waiting(ready_mariadb, "first", bells):
        with waiting(ready_mariadb, "second", bells):
            assert next_of("second", bells)
        until(lambda: not is_used(cursor, locks_of(ready_mariadb, "second")[0]))
        assert is_used(cursor, locks_of(ready_mariadb, "first")[0])


@pytest.mark.usefixtures("short_sleeps")
def test_a_queue_that_finds_no_free_lock_tries_again(
    ready_mariadb: str, cursor: Cursor, asked: list[str]
) -> None:
    bells: Bells = SimpleQueue()
    locks = locks_of(ready_mariadb, "orders")
    for lock in locks:
        cursor.execute("SELECT GET_LOCK(%s, 0)", (lock,))
    with waiting(ready_mariadb, "orders", bells):
        until(lambda: any(locks[-1] in text for text in asked))
        cursor.execute("SELECT RELEASE_LOCK(%s)", (locks[7],))
        assert next_of("orders", bells)
        assert is_used(cursor, locks[7])


def test_a_wake_up_that_could_not_be_sent_is_sent_on_the_next_connection(
    ready_mariadb: str, cursor: Cursor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alerts, "SLEEP_SECONDS", 10 * PATIENCE)  # only a wake-up ends it
    monkeypatch.setattr(line_of_any, "RETRY_EVERY", 0.001)
    wire, bells = MariadbWire(MariadbSettings.from_url(ready_mariadb)), Bells()
    with mailbox_of(wire, bells) as here, mailbox_of(wire, bells) as there:
        there.listen(wire, "orders")
        assert bells.get(timeout=PATIENCE)
        until(lambda: rows(cursor, ASLEEP) != [])
        here.note(wire, "orders", 0)
        assert bells.get(timeout=PATIENCE)
        until(lambda: rows(cursor, ASLEEP) != [])
        until(lambda: rows(cursor, IDLE) != [])
        ((sender,),) = rows(cursor, IDLE)
        cursor.execute(f"KILL {sender}")
        until(lambda: rows(cursor, IDLE) == [])
        here.note(wire, "orders", 0)
        assert bells.get(timeout=PATIENCE)


@contextmanager
def mailbox_of(wire: MariadbWire, bells: Bells) -> Iterator[Mailbox[MariadbConnection]]:
    """The mailbox of a process with one queue."""
    box, on_alert = Mailbox[MariadbConnection](), lambda _: bells.put("orders")
    box.join("orders", on_alert)
    try:
        yield box
    finally:
        box.leave(wire, "orders", on_alert)


def rows(cursor: Cursor, look: str) -> list[Any]:
    cursor.execute(look)
    return list(cursor.fetchall())
