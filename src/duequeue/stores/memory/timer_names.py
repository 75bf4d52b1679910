"""The timers that a URL of the memory store can name."""

from typing import Generic, TypeVar

from duequeue.stores.memory.table import MakeTimer
from duequeue.timers import (
    Handle,
    HashedWheel,
    HeapTimer,
    HierarchicalWheel,
    SimpleWheel,
    SortedHashedWheel,
    Timer,
)

T = TypeVar("T")

DEFAULT_TIMER = "heap"


class UnboundedSimpleWheel(Generic[T]):
    """A simple wheel, with a heap for items beyond its span; every item needs a rank.

    A queue takes messages for any instant, so it cannot pass the wheel's refusal on.
    """

    def __init__(self) -> None:
        self._parts: tuple[Timer[T], Timer[T]] = SimpleWheel(), HeapTimer()

    def schedule(self, at: int, item: T, rank: int | None = None) -> Handle:
        """Add an item that is due at `at`."""
        wheel, heap = self._parts
        try:
            return wheel.schedule(at, item, rank)
        except ValueError:
            return heap.schedule(at, item, rank)

    def cancel(self, handle: Handle) -> bool:
        """Remove an item; return False if it is no longer there."""
        return any(part.cancel(handle) for part in self._parts)

    def advance(self, now: int) -> list[T]:
        """Remove and return the items that are due at `now`, in due order."""
        due: list[T] = []
        while (found := self.first(now)) is not None:
            handle, item = found
            self.cancel(handle)
            due.append(item)
        return due

    def first(self, now: int) -> tuple[Handle, T] | None:
        """Return the first item that is due at `now`, and its handle, without removing it."""
        firsts = [part.first(now) for part in self._parts]
        found = [first for first in firsts if first is not None]
        return min(found, key=_handle_of, default=None)

    def next_due(self) -> int | None:
        """Return the instant at which the first item is due, or None if there are no items."""
        instants = [part.next_due() for part in self._parts]
        return min((at for at in instants if at is not None), default=None)

    def __len__(self) -> int:
        return sum(map(len, self._parts))


def _handle_of(found: tuple[Handle, T]) -> Handle:
    return found[0]


TIMERS: dict[str, MakeTimer] = {
    "heap": HeapTimer,
    "simple": UnboundedSimpleWheel,
    "sorted": SortedHashedWheel,
    "hashed": HashedWheel,
    "hierarchical": HierarchicalWheel,
}
