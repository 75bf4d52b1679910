"""What all wheels share: a hand that moves, and a heap for what it has passed."""

from abc import ABC, abstractmethod
from bisect import bisect_left
from typing import Generic, TypeVar

from duequeue.errors import InvalidArgument
from duequeue.timers.heap import HeapTimer
from duequeue.timers.timer import RANK_BITS, Handle, due_of, end_of, not_millis

T = TypeVar("T")


class Wheel(ABC, Generic[T]):
    """A timer whose time is cut into ticks; items that are due in the same tick lie together.

        slots      …  [   ]  [ a ]  [b c]  [   ]  [ d ]  …        ahead of the hand: in no order
                        ▲
                       hand                                       passed: a small heap, in order

    Adding and cancelling cost O(1), because nothing ahead of the hand is in order. When the hand
    reaches a slot, its items move to the heap, which knows the millisecond of each. The heap also
    takes items for a tick that the hand has passed, as after a clock was set back. So the order is
    exact however coarse the ticks are, and however the clock jumps. A new wheel's hand starts at
    the first instant that it is given.
    """

    def __init__(self, tick: int) -> None:
        self._tick = at_least_one(tick, "tick")
        self._hand: int | None = None  # a tick
        self._passed: HeapTimer[T] = HeapTimer()
        self._ahead = 0
        self._soonest: Handle | None = None  # of those ahead of the hand, if it is known
        self._added = 0

    def schedule(self, at: int, item: T, rank: int | None = None) -> Handle:
        """Add an item that is due at `at`."""
        if rank is None:
            rank = self._added = self._added + 1
        try:
            handle = at << RANK_BITS | rank
        except TypeError:
            raise not_millis(at) from None
        tick = at // self._tick
        hand = self._start(tick - 1) if self._hand is None else self._hand
        if tick <= hand:
            self._passed.put(handle, item)
            return handle
        self._put(tick, handle, item)
        if not self._ahead or (self._soonest is not None and handle < self._soonest):
            self._soonest = handle
        self._ahead += 1
        return handle

    def cancel(self, handle: Handle) -> bool:
        """Remove an item; return False if it is no longer there."""
        try:
            tick = due_of(handle) // self._tick
        except TypeError:
            return False  # as from a heap, which has nothing under None either
        if self._hand is None or tick <= self._hand:
            return self._passed.cancel(handle)
        if not self._remove(tick, handle):
            return False
        self._ahead -= 1
        if handle == self._soonest:
            self._soonest = None
        return True

    def advance(self, now: int) -> list[T]:
        """Remove and return the items that are due at `now`, in due order."""
        swept = self._turn(now)
        if self._passed:
            self._passed.put_all(swept)
            return self._passed.advance(now)
        handles = sorted(swept)  # sorting once is faster than filling a heap and emptying it
        due = bisect_left(handles, end_of(now))
        items = [swept.pop(handle) for handle in handles[:due]]
        self._passed.put_all(swept)
        return items

    def first(self, now: int) -> tuple[Handle, T] | None:
        """Return the first item that is due at `now`, and its handle, without removing it."""
        self._passed.put_all(self._turn(now))
        return self._passed.first(now)

    def next_due(self) -> int | None:
        """Return the instant at which the first item is due, or None if there are no items."""
        if self._passed or self._hand is None or not self._ahead:
            return self._passed.next_due()
        if self._soonest is None:
            self._soonest = self._find_soonest(self._hand)
        return due_of(self._soonest)

    def __len__(self) -> int:
        return self._ahead + len(self._passed)

    def _turn(self, now: int) -> dict[Handle, T]:
        """Move the hand, and return the items that it has passed."""
        if not isinstance(now, int):  # or the hand would move before `end_of` raises this
            raise not_millis(now, "now")
        tick = now // self._tick
        hand = self._start(tick) if self._hand is None else self._hand
        if tick <= hand:
            return {}
        swept = self._sweep(hand, tick) if self._ahead else {}
        self._hand = tick
        self._ahead -= len(swept)
        if self._soonest in swept:
            self._soonest = None
        return swept

    def _start(self, hand: int) -> int:
        """Set the hand for the first time."""
        self._hand = hand
        return hand

    @abstractmethod
    def _put(self, tick: int, handle: Handle, item: T) -> None:
        """Add an item for a tick ahead of the hand."""

    @abstractmethod
    def _remove(self, tick: int, handle: Handle) -> bool:
        """Remove an item ahead of the hand; return False if it is not there."""

    @abstractmethod
    def _sweep(self, hand: int, tick: int) -> dict[Handle, T]:
        """Remove and return everything from after `hand` until the end of `tick`."""

    @abstractmethod
    def _find_soonest(self, hand: int) -> Handle:
        """Return the handle that is due first after `hand`; there is one."""


def at_least_one(number: int, argument: str) -> int:
    """Return a number that is above 0, or raise."""
    if type(number) is not int or number < 1:
        raise InvalidArgument(argument, f"must be a whole number above 0, not {number!r}")
    return number
