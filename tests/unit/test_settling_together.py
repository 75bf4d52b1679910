"""Several messages that a consumer settles in one statement."""

from datetime import UTC, datetime, timedelta
from typing import Any

from duequeue import ManualClock, Message, Queue
from duequeue.consumer.settling import settle
from duequeue.consumer.workload import Done
from duequeue.contract.phrases import DAY, PATIENCE, in_background
from duequeue.drive.actions import performer
from duequeue.drive.steps import drive
from duequeue.verdict import Released


def test_what_is_released_wakes_for_the_first_that_is_due() -> None:
    clock = ManualClock(datetime(2026, 3, 1, tzinfo=UTC))
    with Queue[Any].open("memory:", "orders", clock=clock, poll_interval=DAY) as queue:
        queue.offer_batch([Message(key, 1) for key in "ab"])
        soon, late = queue.try_poll_many(2)
        waiting = in_background(queue.poll)
        for _ in range(20):
            queue.stats()  # while it falls asleep
        done = [Done(soon, Released(timedelta(0))), Done(late, Released(DAY / 2))]
        context = queue._context  # noqa: SLF001 - a consumer settles whenever it likes
        drive(settle(context, done), performer(queue._session))  # noqa: SLF001 - likewise
        found = waiting.result(PATIENCE)
        assert found is not None
        assert found.key == "a"
