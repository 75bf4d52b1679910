"""Responses that are given in the caller's own transaction count with its commit."""

import pytest

from duequeue import NotAnswered, Response
from duequeue.contract.faces import QueueFace
from duequeue.contract.fixtures import START, OpenQueue
from duequeue.contract.phrases import DAY, PATIENCE, claim, in_background
from tests.within.conftest import Connect


@pytest.fixture(params=["sqlite", "postgres", "mariadb"])
def store(request: pytest.FixtureRequest) -> str:
    """Each store that has transactions."""
    return str(request.param)


def test_a_response_appears_with_the_commit(queue: QueueFace, connect: Connect) -> None:
    queue.offer("a", 1)
    connection = connect()
    inside = queue.within(connection)
    assert claim(inside).ack(response="done")
    assert inside.response("a", 0) == Response("done", START)
    assert queue.response("a", 0) is None
    connection.commit()
    assert queue.response("a", 0) == Response("done", START)


def test_a_response_vanishes_with_the_rollback(queue: QueueFace, connect: Connect) -> None:
    queue.offer("a", 1)
    claim(queue).ack(response="first")
    queue.offer("a", 2)
    connection = connect()
    inside = queue.within(connection)
    assert claim(inside).ack(response="second")
    connection.rollback()
    assert queue.response("a", 0) is None  # the message is back
    assert claim(queue).ack()
    assert queue.response("a", 0) is None  # and the first response is not


def test_a_refusal_counts_with_the_commit(queue: QueueFace, connect: Connect) -> None:
    queue.offer("a", 1)
    queue.offer("b", 1)
    connection = connect()
    inside = queue.within(connection)
    assert claim(inside).bury("bad")
    assert inside.drop("b")
    connection.commit()
    for key, reason in (("a", "bad"), ("b", "dropped")):
        with pytest.raises(NotAnswered, match=reason):
            queue.response(key, 0)


@pytest.mark.parametrize("store", ["sqlite", "postgres"], indirect=True)
def test_the_commit_wakes_a_waiting_call(open_queue: OpenQueue, connect: Connect) -> None:
    queue = open_queue(poll_interval=DAY)
    queue.offer("a", 1)
    waiting = in_background(lambda: queue.response("a"))
    queue.stats()
    connection = connect()
    assert claim(queue.within(connection)).ack(response="done")
    queue.stats()
    assert not waiting.done()
    connection.commit()
    assert waiting.result(PATIENCE) == Response("done", START)
