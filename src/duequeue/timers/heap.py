"""A binary heap with lazy cancelling."""

from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

from duequeue.timers.timer import RANK_BITS, Handle, due_of, end_of, not_millis

T = TypeVar("T")

_SLACK = 64
_GONE = object()


class HeapTimer(Generic[T]):
    """A heap of handles, and a dictionary with the items of those that still count.

        heap                    3               items   3: "c"
                              /   \\                     5: "e"
                             5     4                    8: "h"
                            / \\                         9: "i"
                           9   8                        (4 was cancelled)

    Cancelling only deletes from the dictionary. The heap drops such a handle when it comes to the
    top, or all of them at once when they are more than half of the heap. So adding and taking cost
    O(log n), cancelling costs O(1) on average, and looking at the first item O(1).
    """

    def __init__(self) -> None:
        self._heap: list[Handle] = []
        self._items: dict[Handle, T] = {}
        self._added = 0

    def schedule(self, at: int, item: T, rank: int | None = None) -> Handle:
        """Add an item that is due at `at`."""
        if rank is None:
            rank = self._added = self._added + 1
        try:
            handle = at << RANK_BITS | rank
        except TypeError:
            raise not_millis(at) from None
        heappush(self._heap, handle)  # first, because a handle without an item does no harm
        self._items[handle] = item
        return handle

    def put(self, handle: Handle, item: T) -> None:
        """Add an item under its handle."""
        heappush(self._heap, handle)
        self._items[handle] = item

    def put_all(self, items: dict[Handle, T]) -> None:
        """Add many items at once."""
        if self._items:
            for handle, item in items.items():
                self.put(handle, item)
        else:
            self._heap, self._items = sorted(items), items  # a sorted list is a heap

    def cancel(self, handle: Handle) -> bool:
        """Remove an item; return False if it is no longer there."""
        if self._items.pop(handle, _GONE) is _GONE:
            return False
        if len(self._heap) > 2 * len(self._items) + _SLACK:
            heap = list(self._items)
            heapify(heap)
            self._heap = heap
        return True

    def advance(self, now: int) -> list[T]:
        """Remove and return the items that are due at `now`, in due order."""
        return list(self.take(end_of(now)).values())

    def take(self, end: int) -> dict[Handle, T]:
        """Remove and return the items whose handles are less than `end`, in order."""
        heap, items = self._heap, self._items
        taken = {}
        while heap and heap[0] < end:
            handle = heappop(heap)
            if handle in items:
                taken[handle] = items.pop(handle)
        return taken

    def first(self, now: int) -> tuple[Handle, T] | None:
        """Return the first item that is due at `now`, and its handle, without removing it."""
        handle = self.first_handle()
        if handle is None or handle >= end_of(now):
            return None
        return handle, self._items[handle]

    def first_handle(self) -> Handle | None:
        """Return the handle that is due first."""
        heap = self._heap
        while heap and heap[0] not in self._items:
            heappop(heap)
        return heap[0] if heap else None

    def next_due(self) -> int | None:
        """Return the instant at which the first item is due, or None if there are no items."""
        handle = self.first_handle()
        return None if handle is None else due_of(handle)

    def __len__(self) -> int:
        return len(self._items)
