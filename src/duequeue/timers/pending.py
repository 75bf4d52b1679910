"""The items of a delay queue, and how those who wait for them look again and again."""

import threading
from collections.abc import Generator
from datetime import datetime, timedelta
from time import monotonic
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from duequeue.clock import Clock, ManualClock, SystemClock, checked_clock, millis_of
from duequeue.errors import InvalidType, QueueClosed
from duequeue.instants import due_millis
from duequeue.timers.heap import HeapTimer
from duequeue.timers.timer import Handle, Timer, due_of, rank_of
from duequeue.wakeups.bell import Bell
from duequeue.wakeups.next_look import NEVER, pause_before_next_look

T = TypeVar("T")

# Items that were taken out, with their handles, so that they can go back to their places.
Taken: TypeAlias = list[tuple[Handle, T]]


class TimedWait(NamedTuple):
    """How to wait for the bell before the next look; see `Bell.wait`."""

    heard: int
    looks_at: int
    seconds: float


class Pending(Generic[T]):
    """Items that wait in a timer until they are due; safe to share among threads."""

    def __init__(self, clock: Clock | None, timer: Timer[T] | None) -> None:
        self._clock = checked_clock(SystemClock() if clock is None else clock)
        self._now = millis_of(self._clock)
        self._timer: Timer[T] = HeapTimer() if timer is None else _checked(timer)
        self._lock = threading.Lock()
        self._closed = False
        self.bell = Bell()

    def put(self, item: T, due: datetime | timedelta | None) -> Handle:
        """Add an item, and wake somebody who would look too late for it."""
        due_at = due_millis(due, self._now())
        try:
            with self._lock:
                self._check()
                handle = self._timer.schedule(due_at, item)
        finally:
            self.bell.ring(due_at)
        return handle

    def cancel(self, handle: Handle) -> bool:
        """Remove an item."""
        with self._lock:
            self._check()
            return self._timer.cancel(handle)

    def first(self) -> T | None:
        """Return the item that is due first, now or later."""
        with self._lock:
            self._check()
            due_at = self._timer.next_due()
            found = None if due_at is None else self._timer.first(due_at)
        return None if found is None else found[1]

    def take(self, taken: Taken[T], limit: float) -> None:
        """Move due items to `taken` until it has `limit` of them.

        An item is added there before it leaves the timer, so that no interruption can lose it.
        """
        with self._lock:
            self._check()
            now = self._now()
            while len(taken) < limit and (found := self._timer.first(now)) is not None:
                taken.append(found)
                self._timer.cancel(found[0])

    def put_back(self, taken: Taken[T]) -> None:
        """Undo `take`, after an interruption at any point of it."""
        with self._lock:
            for handle, item in taken:
                self._timer.schedule(due_of(handle), item, rank_of(handle))
        self._wake_another()

    def looks(self, taken: Taken[T], timeout: float | None) -> Generator[TimedWait, None, None]:
        """Look for a due item until there is one or the timeout is over; yield the waits between.

        The timeout is in milliseconds, and passes by the injected clock or by the real one,
        whichever is faster.
        """
        began, began_at = monotonic(), self._now()
        clock = self._clock
        unsubscribe = (
            clock.subscribe(self.bell.ring_all) if isinstance(clock, ManualClock) else None
        )
        try:
            while True:
                heard = self.bell.rings
                self.take(taken, 1)
                if taken:
                    return
                now = self._now()
                passed = max((monotonic() - began) * 1000, now - began_at)
                left = None if timeout is None else timeout - passed
                looks_at = self._next_due()
                pause = pause_before_next_look(now, looks_at, left)
                if pause is None:
                    return
                yield TimedWait(heard, looks_at, pause)
        finally:
            if unsubscribe is not None:
                unsubscribe()
            self._wake_another()

    def close(self) -> None:
        """Refuse every later call, and wake those who wait."""
        self._closed = True
        self.bell.ring_all()

    def __len__(self) -> int:
        return len(self._timer)

    def _wake_another(self) -> None:
        """Have another caller look in time for the next item, because this one may not."""
        self.bell.ring(self._next_due())

    def _next_due(self) -> int:
        with self._lock:
            due_at = self._timer.next_due()
        return NEVER if due_at is None else due_at

    def _check(self) -> None:
        if self._closed:
            raise QueueClosed("the delay queue is closed")


def _checked(timer: Timer[T]) -> Timer[T]:
    """Return a timer, or raise if it is something else, such as the class of one."""
    if isinstance(timer, type) or not hasattr(timer, "schedule"):
        raise InvalidType("timer", f"must be a timer, such as HierarchicalWheel(), not {timer!r}")
    return timer
