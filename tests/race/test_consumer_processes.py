"""Consumers in processes that are told to stop, or are killed."""

import os
import signal
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from duequeue import ManualClock, Message, Queue
from duequeue.contract.faces import QueueFace, SyncFace
from duequeue.contract.phrases import DEFAULT_LEASE, keys_of, snapshot
from duequeue.contract.stage import until, until_gone
from duequeue.message import State
from tests.race.conftest import OpenRival
from tests.race.consumer_parts import (
    PERMITS,
    consume_until_killed,
    run_until_signalled,
    run_until_signalled_async,
)
from tests.race.crew import Hand

KEYS = [f"order-{number:04}" for number in range(2000)]

RUN = pytest.mark.parametrize(
    "run", [run_until_signalled, run_until_signalled_async], ids=["threads", "tasks"]
)
SIGNALS = pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])


@pytest.fixture
def queue(store_url: str) -> Any:
    """The queue of the other process, by the machine's own clock."""
    with SyncFace().open(store_url, "orders") as queue:
        yield queue


def begun(hand: Hand, run: Callable[[str], str], queue: QueueFace, url: str) -> int:
    """Have three messages fetched and the first one begun; return the process."""
    queue.offer_batch([Message(key, 1) for key in "abc"])
    hand.start(partial(run, url))
    process = hand.heard()
    assert hand.heard() == "a"
    until(lambda: queue.stats().leased == 3)
    return int(process)


@RUN
@SIGNALS
def test_a_signal_stops_in_good_order(
    hand: Hand, queue: QueueFace, store_url: str, run: Callable[[str], str], number: int
) -> None:
    process = begun(hand, run, queue, store_url)
    os.kill(process, number)
    until(lambda: queue.stats().due == 2)
    assert snapshot(queue, "a").state is State.LEASED
    with Queue.open(store_url, PERMITS) as permits:
        permits.offer("a", 1)
    assert hand.outcome() == ("stopped", None)
    assert not queue.contains("a")
    left = queue.try_poll_many(10)
    assert [(delivery.key, delivery.attempt) for delivery in left] == [("b", 1), ("c", 1)]


@RUN
@SIGNALS
def test_a_second_signal_stops_at_once(
    hand: Hand, queue: QueueFace, store_url: str, run: Callable[[str], str], number: int
) -> None:
    process = begun(hand, run, queue, store_url)
    os.kill(process, number)
    until(lambda: queue.stats().due == 2)
    os.kill(process, number)
    assert hand.outcome() == ("stopped", None)
    assert queue.stats().leased == 0
    assert sorted(keys_of(queue.try_poll_many(10))) == ["a", "b", "c"]


def test_killed_in_the_middle_of_a_batch(
    open_rival: OpenRival, store_url: str, hand: Hand, clock: ManualClock
) -> None:
    queue: Any = open_rival()
    queue.offer_batch([Message(key, 1) for key in KEYS])
    hand.start(partial(consume_until_killed, store_url))
    handled = [hand.heard() for _ in range(100)]
    handled += hand.last_words()

    survivors: list[str] = []
    with queue.consume(lambda delivery: survivors.append(delivery.key)):
        until(lambda: queue.stats().due == 0)
        until(lambda: queue.stats().leased == queue.stats().total)
        clock.advance(DEFAULT_LEASE)
        queue.offer("afterwards", 1)
        until_gone(queue, "afterwards")
        until(lambda: queue.stats().total == 0)
    assert set(handled) | set(survivors) == {*KEYS, "afterwards"}
