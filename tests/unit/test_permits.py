"""Permits come back, even from code that a signal interrupts."""

import gc
import signal
import threading
from collections.abc import Iterator
from functools import partial
from itertools import count
from math import inf
from types import FrameType
from weakref import ref

import pytest

from duequeue.contract.phrases import PATIENCE, in_background
from duequeue.process.permits import Permits


class TimeUp(Exception):
    """What a time limit raises."""


def test_no_more_permits_than_there_are() -> None:
    permits = Permits(2)
    first, second = permits.take(0), permits.take(0)
    assert first is not None
    assert second is not None
    assert permits.take(0) is None
    first.give_back()
    assert permits.take(0) is first


def test_a_permit_that_is_given_back_goes_to_a_waiting_thread() -> None:
    permits = Permits(1)
    held = permits.take(0)
    waiting = in_background(lambda: permits.take(inf))
    assert held is not None
    held.give_back()
    assert waiting.result(PATIENCE) is held


def test_those_who_wait_get_permits_in_turn() -> None:
    permits, turns = Permits(1), [0, 0, 0]

    def take_turns(number: int) -> None:
        while max(turns) < 50:
            permit = permits.take(inf)
            assert permit is not None
            turns[number] += 1
            threading.Event().wait(0.0002)  # as a commit does, which lets the others run
            permit.give_back()

    for each in [in_background(partial(take_turns, number)) for number in range(3)]:
        each.result(PATIENCE)
    assert min(turns) > 25


def test_a_permit_for_somebody_who_gave_up_goes_to_the_next() -> None:
    permits = Permits(1)
    held = permits.take(0)
    assert held is not None
    assert in_background(lambda: permits.take(0.01)).result(PATIENCE) is None
    waiting = in_background(lambda: permits.take(inf))
    held.give_back()
    assert waiting.result(PATIENCE) is held


def test_a_permit_that_is_lost_is_replaced() -> None:
    permits = Permits(1)
    lost = permits.take(0)
    del lost
    assert permits.take(0) is not None


def test_permits_end_with_their_owner() -> None:
    permits = Permits(3)
    held = permits.take(0)
    owner = ref(permits)
    del permits
    gc.collect()
    assert owner() is None
    assert held is not None
    held.give_back()  # to nobody


@pytest.fixture
def time_limit() -> Iterator[None]:
    """A time limit that strikes again and again, wherever the program is."""

    def strike(_number: int, _frame: FrameType | None) -> None:
        raise TimeUp

    before = signal.signal(signal.SIGALRM, strike)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("time_limit")
@pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(), reason="signals need the main thread"
)
def test_no_interruption_loses_a_permit() -> None:
    permits = Permits(1)
    strikes = 0
    for number in count():
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.00001 * (1 + number % 20))
            use_for_ever(permits)
        except TimeUp:
            strikes += 1
        signal.setitimer(signal.ITIMER_REAL, 0)
        assert permits.take(1) is not None, f"lost after {number} strikes"
        if strikes == 2000:
            break


def use_for_ever(permits: Permits) -> None:
    while True:
        permit = permits.take(1)
        try:
            pass
        finally:
            if permit is not None:
                permit.give_back()
