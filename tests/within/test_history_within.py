"""Rows of history inside a caller's transaction: with its commit, or never."""

import pytest

from duequeue import ManualClock, Message, Outcome
from duequeue.contract.cron_phrases import ONE, messages
from duequeue.contract.faces import QueueFace
from duequeue.contract.fixtures import START, OpenQueue
from duequeue.contract.phrases import DAY
from duequeue.contract.test_history import told
from tests.within.conftest import Connect

EVERY_OUTCOME = [
    ("a", Outcome.ACKED),
    ("b", Outcome.ACKED),
    ("c", Outcome.BURIED),
    ("d", Outcome.DROPPED),
    ("e", Outcome.REPLACED),
]


@pytest.fixture(params=["sqlite", "postgres", "mariadb"])
def store(request: pytest.FixtureRequest) -> str:
    """Each store that has transactions."""
    return str(request.param)


@pytest.fixture
def queue(open_queue: OpenQueue) -> QueueFace:
    """A queue that keeps its history, with messages in it."""
    queue = open_queue(history=True)
    queue.offer_batch([Message(key, 1, START) for key in "abcde"])
    return queue


def settle_everything(inside: QueueFace) -> None:
    """Settle the messages in every way there is."""
    first, second, third = inside.try_poll_many(3)
    assert first.ack()
    assert inside.ack_many([second]) == 1
    assert third.bury("enough")
    assert inside.drop("d")
    inside.offer("e", 2, START)


def test_rows_come_with_the_commit(queue: QueueFace, connect: Connect) -> None:
    connection = connect()
    inside = queue.within(connection)
    settle_everything(inside)
    assert told(inside.history()) == EVERY_OUTCOME
    assert queue.history() == []
    connection.commit()
    assert told(queue.history()) == EVERY_OUTCOME


def test_a_rollback_leaves_no_rows(queue: QueueFace, connect: Connect) -> None:
    connection = connect()
    settle_everything(queue.within(connection))
    connection.rollback()
    assert queue.history() == []
    assert queue.stats().total == 5


def test_a_delivery_of_the_queue_may_be_settled_inside(queue: QueueFace, connect: Connect) -> None:
    held = queue.try_poll_many(2)
    connection = connect()
    assert queue.within(connection).ack_many(held) == 2
    assert queue.history() == []
    connection.commit()
    assert told(queue.history()) == EVERY_OUTCOME[:2]


def test_ticks_removed_inside_leave_rows_with_the_commit(
    queue: QueueFace, connect: Connect
) -> None:
    queue.cron.install_tick(ONE, "reports", messages(1, 2))
    connection = connect()
    assert queue.within(connection).cron.pause("reports")
    assert queue.history() == []
    connection.commit()
    assert [outcome for _, outcome in told(queue.history())] == [Outcome.DROPPED] * 2


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_a_day_that_nobody_made_ready(
    queue: QueueFace, clock: ManualClock, connect: Connect, end: str
) -> None:
    clock.advance(1000 * DAY)
    for key in "abc":
        connection = connect()
        inside = queue.within(connection)
        assert inside.drop(key)
        getattr(connection, end)()
    assert queue.drop("d")
    dropped = "abcd" if end == "commit" else "d"
    assert told(queue.history()) == [(key, Outcome.DROPPED) for key in dropped]
