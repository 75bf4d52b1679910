"""`drain` inside the caller's own transaction, as in a test that rolls everything back."""

from typing import Any

import pytest

from duequeue import Bury
from duequeue.contract.faces import QueueFace
from duequeue.contract.test_drain import drained
from tests.within.conftest import Connect


@pytest.fixture(params=["sqlite", "postgres", "mariadb"])
def store(request: pytest.FixtureRequest) -> str:
    """Each store that has transactions."""
    return str(request.param)


def test_what_is_handled_within_comes_back_with_the_rollback(
    queue: QueueFace, connect: Connect
) -> None:
    queue.offer("outside", 1)
    connection = connect()
    inside = queue.within(connection)
    inside.offer("inside", 2)
    inside.offer("unwanted", 3)
    seen: list[Any] = []

    def handler(delivery: Any) -> object:
        seen.append(delivery.key)
        return Bury("unwanted") if delivery.key == "unwanted" else None

    assert drained(inside, handler) == 3
    assert seen == ["outside", "inside", "unwanted"]
    assert (inside.stats().total, inside.stats().buried) == (0, 1)
    connection.rollback()
    assert (queue.stats().total, queue.stats().buried) == (1, 0)
    assert queue.contains("outside")
