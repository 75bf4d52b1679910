"""`duequeue.run`: one signal stops all consumers of a process."""

import asyncio
import os
import signal
from threading import Event
from typing import Any

import pytest

import duequeue
from duequeue import AsyncQueue, Queue
from duequeue.contract.phrases import PATIENCE, SECOND, in_background
from duequeue.contract.stage import until

SIGNALS = pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])


@SIGNALS
def test_a_signal_stops_all_consumers_and_lets_their_handlers_finish(number: int) -> None:
    before = signal.getsignal(number)
    handled: list[str] = []
    running = [Event(), Event()]

    def handle(which: int, delivery: Any) -> None:
        running[which].set()
        until(lambda: all(consumer._handover.workload.stopping for consumer in consumers))  # noqa: SLF001
        handled.append(delivery.key)

    def send_when_both_run() -> None:
        for each in running:
            assert each.wait(PATIENCE)
        until(lambda: signal.getsignal(number) is not before)
        os.kill(os.getpid(), number)

    with Queue.open("memory:run", "a") as one, Queue.open("memory:run", "b") as other:
        consumers = [
            one.consume(lambda delivery: handle(0, delivery)),
            other.consume(lambda delivery: handle(1, delivery)),
        ]
        one.offer("first", 1)
        other.offer("second", 1)
        sending = in_background(send_when_both_run)
        duequeue.run(*consumers)
        sending.result(PATIENCE)
        assert all(consumer.stopped for consumer in consumers)
        assert one.stats().total == other.stats().total == 0
    assert sorted(handled) == ["first", "second"]
    assert signal.getsignal(number) is before


def test_it_returns_when_all_have_stopped_by_themselves() -> None:
    with Queue.open("memory:run", "a") as one, Queue.open("memory:run", "b") as other:
        consumers = [one.consume(print), other.consume(print)]
        stopping = [in_background(consumer.stop) for consumer in consumers]
        duequeue.run(*consumers, grace=SECOND)
        for each in stopping:
            each.result(PATIENCE)


def test_off_the_main_thread_it_names_the_way_out() -> None:
    with Queue.open("memory:run", "a") as queue, queue.consume(print) as consumer:
        for run in (consumer.run, lambda: duequeue.run(consumer)):
            running = in_background(run)
            with pytest.raises(RuntimeError, match=r"main thread; .* `with` block"):
                running.result(PATIENCE)


def test_it_needs_blocking_consumers() -> None:
    with pytest.raises(ValueError, match="at least one consumer"):
        duequeue.run()
    run: Any = duequeue.run
    with pytest.raises(TypeError, match=r"not str; for AsyncConsumers, use `await asyncio.gather"):
        run("orders")


@SIGNALS
def test_async_consumers_are_gathered(number: int) -> None:
    async def handle(delivery: Any) -> None:
        raise AssertionError(delivery)

    async def scenario() -> None:
        before = signal.getsignal(number)
        async with (
            AsyncQueue.open("memory:run", "a") as one,
            AsyncQueue.open("memory:run", "b") as other,
        ):
            consumers = [one.consume(handle), other.consume(handle)]
            asyncio.get_running_loop().call_later(0.01, os.kill, os.getpid(), number)
            await asyncio.gather(*(consumer.run() for consumer in consumers))
            assert all(consumer.stopped for consumer in consumers)
        assert signal.getsignal(number) is before

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE))
