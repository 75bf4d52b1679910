"""The timers, and what they are compared with.

Each subject adds items, cancels some by their handles, and lets all others expire. The loops are
those of a caller, so that the cost of a method call counts for each item.
"""

import asyncio
import sched
from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any, Protocol

import uvloop

from duequeue.timers import (
    HashedWheel,
    HeapTimer,
    HierarchicalWheel,
    SimpleWheel,
    SortedHashedWheel,
    Timer,
)


class Subject(Protocol):
    """Something that holds items until they are due."""

    def fill(self, instants: Sequence[int]) -> list[Any]:
        """Add an item for each instant, and return their handles."""

    def cancel(self, handles: Sequence[Any]) -> None:
        """Cancel these."""

    def expire(self, now: int) -> None:
        """Remove all items that are due, in due order."""


class Ours:
    """One of our timers."""

    def __init__(self, timer: Timer[int]) -> None:
        self._timer = timer

    def fill(self, instants: Sequence[int]) -> list[Any]:
        schedule = self._timer.schedule
        return [schedule(at, at) for at in instants]

    def cancel(self, handles: Sequence[Any]) -> None:
        cancel = self._timer.cancel
        for handle in handles:
            cancel(handle)

    def expire(self, now: int) -> None:
        self._timer.advance(now)


class BareHeap:
    """`heapq` and a dictionary inside the loops themselves, with the same lazy cancelling."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int]] = []
        self._items: dict[int, int] = {}
        self._numbers = count()

    def fill(self, instants: Sequence[int]) -> list[Any]:
        heap, items, numbers = self._heap, self._items, self._numbers
        handles = []
        for at in instants:
            number = next(numbers)
            items[number] = at
            heappush(heap, (at, number))
            handles.append(number)
        return handles

    def cancel(self, handles: Sequence[Any]) -> None:
        heap, items = self._heap, self._items
        for handle in handles:
            items.pop(handle, None)
            if len(heap) > 2 * len(items) + 64:
                heap = [entry for entry in heap if entry[1] in items]
                heapify(heap)
        self._heap = heap

    def expire(self, now: int) -> None:
        heap, items = self._heap, self._items
        due = []
        while heap and heap[0][0] <= now:
            _, number = heappop(heap)
            if number in items:
                due.append(items.pop(number))


class Scheduler:
    """The standard library's `sched`, on a clock that the measurement moves."""

    def __init__(self) -> None:
        self._now = 0
        self._scheduler = sched.scheduler(lambda: self._now, lambda _: None)

    def fill(self, instants: Sequence[int]) -> list[Any]:
        enter = self._scheduler.enterabs
        return [enter(at, 0, int) for at in instants]

    def cancel(self, handles: Sequence[Any]) -> None:
        for handle in handles:
            self._scheduler.cancel(handle)

    def expire(self, now: int) -> None:
        self._now = now
        self._scheduler.run(blocking=False)


class EventLoop:
    """`call_at` of asyncio's own event loop, on a clock that the measurement moves."""

    def __init__(self) -> None:
        self._loop = asyncio.SelectorEventLoop()
        self._now = 0.0
        self._loop.time = lambda: self._now  # type: ignore[method-assign]

    def fill(self, instants: Sequence[int]) -> list[Any]:
        call_at = self._loop.call_at
        return [call_at(at / 1000, int) for at in instants]

    def cancel(self, handles: Sequence[Any]) -> None:
        for handle in handles:
            handle.cancel()

    def expire(self, now: int) -> None:
        self._now = now / 1000
        self._loop.call_soon(self._loop.call_soon, self._loop.stop)
        self._loop.run_forever()
        self._loop.close()


class UvLoop:
    """`call_later` of uvloop, whose timers are libuv's heap in C; nobody can move its clock."""

    def __init__(self) -> None:
        self._loop = uvloop.new_event_loop()

    def fill(self, instants: Sequence[int]) -> list[Any]:
        call_later = self._loop.call_later
        first = min(instants) - 60_000
        return [call_later((at - first) / 1000, int) for at in instants]

    def cancel(self, handles: Sequence[Any]) -> None:
        for handle in handles:
            handle.cancel()


SUBJECTS: dict[str, Callable[[], Any]] = {
    "HeapTimer": lambda: Ours(HeapTimer()),
    "SimpleWheel": lambda: Ours(SimpleWheel()),
    "SortedHashedWheel": lambda: Ours(SortedHashedWheel()),
    "HashedWheel": lambda: Ours(HashedWheel()),
    "HierarchicalWheel": lambda: Ours(HierarchicalWheel()),
    "heapq and dict": BareHeap,
    "asyncio": EventLoop,
    "uvloop": UvLoop,
    "sched": Scheduler,
}
