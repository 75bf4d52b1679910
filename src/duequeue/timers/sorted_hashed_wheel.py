"""A hashed wheel with sorted buckets."""

from duequeue.timers.heap import HeapTimer
from duequeue.timers.ring import RingWheel
from duequeue.timers.timer import RANK_BITS, Handle
from duequeue.timers.wheel import T


class SortedHashedWheel(RingWheel[T, HeapTimer[T]]):
    """A hashed wheel whose buckets are in order, so that nothing of a later turn is looked at.

                      hand
                       ▼
          slot    0    1    2    3    4    5    6    7      8 slots
                [   ][   ][ 2 ][   ][ 4 ][   ][   ][ 7 ]    each bucket is a heap,
                          [18 ]     [12 ]                   with the first due on top
                                    [20 ]

    Adding costs O(log b) for a bucket of b items, and cancelling O(1) on average. The hand takes
    the due items off the top of each bucket and leaves the others alone. `next_due` compares the
    tops of the buckets.
    """

    def _put(self, tick: int, handle: Handle, item: T) -> None:
        slot = tick % self._size
        bucket = self._buckets.get(slot) or self._occupy(slot, HeapTimer())
        bucket.put(handle, item)

    def _remove(self, tick: int, handle: Handle) -> bool:
        slot = tick % self._size
        bucket = self._buckets.get(slot)
        removed = bucket is not None and bucket.cancel(handle)
        if removed and not bucket:
            self._vacate(slot)
        return removed

    def _sweep(self, hand: int, tick: int) -> dict[Handle, T]:
        swept: dict[Handle, T] = {}
        end = (tick + 1) * self._tick << RANK_BITS
        for each in self._occupied_ticks(hand, tick):
            slot = each % self._size
            swept.update(self._buckets[slot].take(end))
            if not self._buckets[slot]:
                self._vacate(slot)
        return swept

    def _find_soonest(self, hand: int) -> Handle:  # noqa: ARG002 - the wheel's signature
        firsts = (bucket.first_handle() for bucket in self._buckets.values())
        return min(first for first in firsts if first is not None)
