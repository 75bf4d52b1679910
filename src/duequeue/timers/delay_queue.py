# Made from delay_queue_async.py: change that file, and run `make made`.
"""A queue in this process whose items can be taken once they are due, blocking."""

from contextlib import closing
from datetime import datetime, timedelta
from math import inf
from typing import Generic, TypeVar

from duequeue.clock import Clock
from duequeue.instants import timeout_millis
from duequeue.process.lifetime import Closing
from duequeue.timers.pending import Pending, Taken
from duequeue.timers.timer import Handle, Timer

T = TypeVar("T")


class DelayQueue(Closing, Generic[T]):
    """A queue of any items for the threads of one process, each with the instant it is due.

    Each item is taken once, by one of those who wait, and never before it is due. Items come in
    due order, and those due at the same millisecond in the order in which they were put in.

    An exception in the middle of a call, such as KeyboardInterrupt, loses no item,
    except on a wheel at the moment when its hand moves.
    """

    def __init__(self, *, clock: Clock | None = None, timer: Timer[T] | None = None) -> None:
        self._pending = Pending(clock, timer)

    def put(self, item: T, due: datetime | timedelta | None = None) -> Handle:
        """Add an item, due at an instant, after a delay, or now, and return its handle."""
        return self._pending.put(item, due)

    def cancel(self, handle: Handle) -> bool:
        """Remove an item, and return whether it was still there."""
        return self._pending.cancel(handle)

    def take(self) -> T:
        """Wait until an item is due, and take it."""
        taken: Taken[T] = []
        try:
            self._wait(taken, None)
            return taken[0][1]
        except BaseException:
            self._pending.put_back(taken)
            raise

    def poll(self, timeout: timedelta | float | None = 0) -> T | None:
        """Take an item that is due, or return None once the timeout has passed.

        Without a timeout it does not wait, and with None it waits as long as `take`.
        """
        millis = None if timeout is None else timeout_millis(timeout)
        taken: Taken[T] = []
        try:
            self._wait(taken, millis)
            return taken[0][1] if taken else None
        except BaseException:
            self._pending.put_back(taken)
            raise

    def drain(self) -> list[T]:
        """Take all items that are due now, in due order."""
        taken: Taken[T] = []
        try:
            self._pending.take(taken, inf)
            items = [item for _, item in taken]
        except BaseException:
            self._pending.put_back(taken)
            raise
        return items

    def peek(self) -> T | None:
        """Return the item that is due first, now or later, without taking it."""
        return self._pending.first()

    def close(self) -> None:
        """Refuse every later call, and end those that wait with an error; closing twice is fine."""
        self._pending.close()

    def __len__(self) -> int:
        return len(self._pending)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} with {len(self)} items>"

    def _wait(self, taken: Taken[T], timeout: float | None) -> None:
        with closing(self._pending.looks(taken, timeout)) as waits:
            for wait in waits:
                self._pending.bell.wait(*wait)
