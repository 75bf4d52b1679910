"""A program that forks while its queue is open: `python -m tests.race.forking WHAT URL`."""

import asyncio
import faulthandler
import os
import sys
import threading
import traceback
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from duequeue import AsyncQueue, History, Queue, QueueClosed, RetryPolicy
from tests.race.together import PATIENCE

PATIENT_LOOKS = timedelta(days=1)  # a poll that is not woken comes too late
HOUR = timedelta(hours=1)
HANGS_AFTER = PATIENCE / 2


def fork(child: Callable[[], object]) -> int:
    """Begin a process that is a copy of this one, and ends with the call."""
    process = os.fork()
    if process == 0:
        faulthandler.dump_traceback_later(HANGS_AFTER, exit=True)
        try:
            child()
        except BaseException:  # noqa: BLE001 - whatever it is, this process must go no further
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return process


def check_end(process: int) -> None:
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0, "see what the child printed"


def check_refusal(call: Callable[[], object]) -> None:
    with pytest.raises(QueueClosed, match="forked"):
        call()


def blocking(url: str) -> None:
    """The child can neither use nor break what is its parent's, and its own queue works."""
    heard, told = os.pipe()
    with Queue[int].open(url, "orders", retry=RetryPolicy.never()) as queue:
        assert queue.poll(0.01) is None  # a poll that waits has a thread that listens
        consumer = queue.consume(print)

        def child() -> None:
            check_refusal(queue.try_poll)
            check_refusal(lambda: queue.consume(print))
            check_refusal(lambda: queue.within(None))
            check_refusal(consumer.run)
            consumer.stop()
            queue.close()
            with Queue[int].open(url, "orders", poll_interval=PATIENT_LOOKS) as own:
                assert own.poll(0.01) is None
                os.write(told, b"!")
                delivery = own.poll(PATIENCE)
                assert delivery is not None
                assert delivery.ack()

        process = fork(child)
        os.read(heard, 1)
        consumer.stop()  # or it might take what the child waits for
        queue.offer("a", 1)
        check_end(process)
        assert queue.stats().total == 0


def outliving(url: str) -> None:
    """What a child offers is kept, though its parent closes first."""
    ready, tell_ready = os.pipe()
    alone, tell_alone = os.pipe()
    with Queue[int].open(url, "orders") as queue:
        queue.offer("of the parent", 1)

        def child() -> None:
            with Queue[int].open(url, "orders") as own:
                own.offer("beside the parent", 1)
                os.write(tell_ready, b"!")
                os.read(alone, 1)
                own.offer("without the parent", 1)

        process = fork(child)
        os.read(ready, 1)
    os.write(tell_alone, b"!")
    check_end(process)
    with Queue[int].open(url, "orders") as queue:
        assert queue.stats().total == 3


async def awaiting(url: str) -> None:
    """The child can neither use nor break what is its parent's."""
    async with AsyncQueue[int].open(url, "orders", retry=RetryPolicy.never()) as queue:

        def child() -> None:
            check_refusal(lambda: queue.try_poll().send(None))
            with pytest.raises(StopIteration):  # it waits for nothing
                queue.close().send(None)

        check_end(fork(child))
        assert (await queue.stats()).total == 0


def reading(url: str) -> None:
    """The same for a history."""
    with History.open(url, retry=RetryPolicy.never()) as history:

        def child() -> None:
            check_refusal(history.days)
            history.close()

        check_end(fork(child))
        assert history.days() == []


class HeldClock:
    """A clock that keeps the crons' thread waiting, which holds the scheduler's lock meanwhile."""

    def __init__(self) -> None:
        self.keeps_waiting = threading.Event()
        self.released = threading.Event()

    def now(self) -> datetime:
        if threading.current_thread().name == "duequeue-cron":
            self.keeps_waiting.set()
            assert self.released.wait(PATIENCE)
        return datetime.now(UTC)


def recurring(url: str) -> None:
    """The child's copy of a cron does nothing, whatever the parent's thread was doing."""
    clock = HeldClock()
    with Queue[int].open(url, "orders", clock=clock, retry=RetryPolicy.never()) as queue:
        handle = queue.cron.install_periodic_tick("reports", HOUR, 1)
        assert clock.keeps_waiting.wait(PATIENCE)

        def child() -> None:
            assert not handle.active
            check_refusal(handle.refresh)
            handle.close()
            queue.cron.close()
            with Queue[int].open(url, "orders") as own:
                with own.cron.install_periodic_tick("reports", HOUR, 1) as own_handle:
                    assert own_handle.active
                assert not own_handle.active

        try:
            check_end(fork(child))
        finally:
            clock.released.set()
        handle.refresh()
        assert handle.active


async def recurring_in_a_loop(url: str) -> None:
    """The same for a loop's crons."""
    async with AsyncQueue[int].open(url, "orders", retry=RetryPolicy.never()) as queue:
        handle = await queue.cron.install_periodic_tick("reports", HOUR, 1)

        def child() -> None:
            assert not handle.active
            check_refusal(lambda: handle.refresh().send(None))
            with pytest.raises(StopIteration):  # it waits for nothing
                handle.close().send(None)

        check_end(fork(child))
        await handle.refresh()
        assert handle.active


if __name__ == "__main__":
    what, place = sys.argv[1:]
    if what == "async":
        asyncio.run(awaiting(place))
    elif what == "async cron":
        asyncio.run(recurring_in_a_loop(place))
    else:
        blocking_ones = {"sync": blocking, "outlive": outliving, "history": reading}
        (blocking_ones | {"cron": recurring})[what](place)
