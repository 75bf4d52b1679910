"""The memory store on each of the timers: its part of the contract, and walks beside the heap."""

import os
import subprocess
import sys
from datetime import timedelta
from functools import partial
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from duequeue import ManualClock, Queue, contract
from duequeue.backends import backend_for
from duequeue.contract.faces import face_named
from duequeue.contract.fixtures import START
from duequeue.stores.memory.table import DEFAULT_TIMER, TIMERS
from tests.model.walk import Pair, Walk

# The contract runs on the default timer with all other stores. The others need only these parts of
# it, because nothing else reaches a timer in another way.
PARTS = (
    "blocking_poll",
    "buried",
    "consumer_idle",
    "consumer_leases",
    "cron_moved_clock",
    "drain",
    "expiry",
    "forecast",
    "giving_up",
    "known_defects",
    "lease",
    "list",
    "offer",
    "offer_batch",
    "poll",
    "read_and_stats",
    "reschedule",
    "settle",
)
SELECTED = ["-k", " or ".join(f"test_{part}.py" for part in PARTS)]
QUIETLY = ["-q", "-p", "no:xdist", "-p", "no:cacheprovider"]
CONTRACT = Path(contract.__file__).parent
OTHERS = [name for name in TIMERS if name != DEFAULT_TIMER]


def test_every_part_is_there() -> None:
    assert all((CONTRACT / f"test_{part}.py").exists() for part in PARTS)


@pytest.mark.parametrize("timer", OTHERS)
def test_the_contract(timer: str, tmp_path: Path) -> None:
    url = f"memory:{{unique}}?timer={timer}"
    options = [*SELECTED, *QUIETLY, "--one-process", "--url", url]
    finished = subprocess.run(
        [sys.executable, "-m", "duequeue.contract", *options],
        cwd=tmp_path,
        env=os.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout[-4000:] + finished.stderr


@pytest.mark.parametrize("timer", OTHERS)
def test_a_wheel_agrees_with_the_heap(request: pytest.FixtureRequest, timer: str) -> None:
    opener = face_named("sync", request)
    numbers = count()

    def open_pair(name: str, **options: object) -> Pair:
        urls = f"memory:{name}?timer={timer}", f"memory:{name} on a heap"
        subject, reference = (opener.open(url, name, **options) for url in urls)
        return subject, reference

    class WalkOfItsOwn(Walk):
        def __init__(self) -> None:
            super().__init__(partial(open_pair, f"walk {next(numbers)}"))

    run_state_machine_as_test(
        WalkOfItsOwn,
        settings=settings(
            max_examples=50,
            stateful_step_count=40,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )


def test_messages_beyond_the_span_of_a_simple_wheel_come_in_their_order() -> None:
    clock = ManualClock(START)
    with Queue[int].open("memory:far?timer=simple", "orders", clock=clock) as queue:
        for days in (300, 0, 2, 1, 300):
            queue.offer(f"in {days} days, {queue.stats().total}", days, timedelta(days=days))
        clock.advance(timedelta(days=300))
        assert [delivery.payload for delivery in queue.try_poll_many(9)] == [0, 1, 2, 300, 300]


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("memory:?timer=stack", "timer must be one of heap, simple, sorted, hashed, hierarchical"),
        ("memory:?timer=", "timer must be one of"),
        ("memory:?tmer=heap", "unknown option 'tmer'; did you mean 'timer'"),
    ],
)
def test_bad_options(url: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        backend_for(url)


def test_the_options_are_not_part_of_the_name() -> None:
    with Queue[int].open("memory:timers?timer=hashed", "orders") as first:
        first.offer("a", 1)
        with Queue[int].open("memory:timers", "orders") as second:
            assert second.contains("a")
        with Queue[int].open("memory:timers?timer=hashed", "orders") as third:
            assert third.contains("a")


def test_an_open_store_keeps_its_timer() -> None:
    with (
        Queue[int].open("memory:timers?timer=hashed", "orders"),
        pytest.raises(ValueError, match=r"memory:timers is open with timer=hashed.*another name"),
    ):
        Queue[int].open("memory:timers?timer=heap", "orders")
    Queue[int].open("memory:timers?timer=heap", "orders").close()
