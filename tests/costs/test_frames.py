"""How many of our own functions a call runs through: the way from face to SQL stays short."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from duequeue import Daily, Delivery, ManualClock, Queue
from tests.costs.frames import Frames, frames_of

DAY = timedelta(days=1)
# The first calls import modules, prepare statements and fill caches.
WARM_UP = 4


@pytest.fixture
def queue(ready_database: str) -> Iterator[Queue[Any]]:
    with Queue.open(ready_database, "orders") as queue:
        yield queue


def test_an_offer_for_later(queue: Queue[Any]) -> None:
    numbers = count()

    def offer() -> None:
        queue.offer(f"order-{next(numbers)}", {"total": 1}, DAY)

    assert_at_most(Frames(45, 21), cost_when_warm(offer))


def test_an_offer_for_now_which_notifies_other_processes(queue: Queue[Any]) -> None:
    numbers = count()

    def offer() -> None:
        queue.offer(f"order-{next(numbers)}", {"total": 1})

    assert_at_most(Frames(50, 23), cost_when_warm(offer))


def test_a_poll_that_finds_a_message(queue: Queue[Any]) -> None:
    fill(queue)
    assert_at_most(Frames(40, 19), cost_when_warm(queue.poll))


def test_a_poll_that_does_not_wait(queue: Queue[Any]) -> None:
    fill(queue)
    assert_at_most(Frames(30, 17), cost_when_warm(queue.try_poll))


def test_an_ack(queue: Queue[Any]) -> None:
    fill(queue)
    deliveries: Iterator[Delivery[Any]] = iter(queue.try_poll_many(2 * WARM_UP))
    assert_at_most(Frames(25, 18), cost_when_warm(lambda: next(deliveries).ack()))


def test_a_daily_schedule_of_six_ticks(tmp_path: Path, clock: ManualClock) -> None:
    with (
        Queue[str].open(f"sqlite:///{tmp_path / 'queue.db'}", "orders", clock=clock) as queue,
        Queue[str].open("memory:warm", "orders", clock=clock) as other,
    ):
        # The first cron of a process reads the zones and starts a thread.
        other.cron.install_daily_schedule("reports", Daily(["09:00"], "Europe/Berlin"), "hello")

        def install() -> None:
            schedule = Daily(["07:00", "12:00", "19:00"], "Europe/Berlin")
            queue.cron.install_daily_schedule("reports", schedule, "hello")

        assert_at_most(Frames(230, 32), frames_of(install))
        assert queue.stats().future == 6


def fill(queue: Queue[Any]) -> None:
    for number in range(2 * WARM_UP):
        queue.offer(f"order-{number}", {"total": 1}, -DAY)


def cost_when_warm(call: Callable[[], object]) -> Frames:
    """Take the cheapest of a few calls, because one may have to wake another thread first."""
    for _ in range(WARM_UP):
        call()
    return min(frames_of(call) for _ in range(WARM_UP))


def assert_at_most(limit: Frames, found: Frames) -> None:
    assert found.frames <= limit.frames
    assert found.files <= limit.files
