"""How many of our own functions a call on MariaDB runs through."""

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from duequeue import Delivery, Queue
from tests.costs.frames import Frames
from tests.costs.test_frames import DAY, WARM_UP, assert_at_most, cost_when_warm, fill


@pytest.fixture
def queue(mariadb_url: str) -> Iterator[Queue[Any]]:
    with Queue.open(mariadb_url, "orders") as queue:
        yield queue


def test_an_offer(queue: Queue[Any]) -> None:
    numbers = count()

    def offer() -> None:
        queue.offer(f"order-{next(numbers)}", {"total": 1}, DAY)

    assert_at_most(Frames(60, 24), cost_when_warm(offer))


def test_a_poll_that_finds_a_message(queue: Queue[Any]) -> None:
    fill(queue)
    assert_at_most(Frames(70, 24), cost_when_warm(queue.poll))


def test_an_ack(queue: Queue[Any]) -> None:
    fill(queue)
    deliveries: Iterator[Delivery[Any]] = iter(queue.try_poll_many(2 * WARM_UP))
    assert_at_most(Frames(43, 20), cost_when_warm(lambda: next(deliveries).ack()))
