"""Calls that begin at the same moment, in threads of this process."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")

PATIENCE = 60.0  # seconds after which whoever has not come is stuck


def together(*calls: Callable[[], T]) -> list[T]:
    """Make all the calls at once and return their results in order."""
    barrier = Barrier(len(calls))

    def begin(call: Callable[[], T]) -> T:
        barrier.wait(PATIENCE)
        return call()

    with ThreadPoolExecutor(len(calls)) as threads:
        futures = [threads.submit(begin, call) for call in calls]
    return [future.result() for future in futures]


def duel(first: Callable[[], T], second: Callable[[], U]) -> tuple[T, U]:
    """Let two calls of different kinds meet."""
    barrier = Barrier(2)

    def begin(call: Callable[[], U]) -> U:
        barrier.wait(PATIENCE)
        return call()

    with ThreadPoolExecutor(1) as thread:
        rival = thread.submit(begin, second)
        barrier.wait(PATIENCE)
        return first(), rival.result(PATIENCE)


def alternating(number: int, first: Callable[[], T], second: Callable[[], U]) -> tuple[T, U]:
    """Let two calls meet; every other time the second one is let go first."""
    if number % 2:
        return duel(first, second)
    late, early = duel(second, first)
    return early, late
