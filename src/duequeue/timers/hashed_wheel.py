"""A hashed wheel with unsorted buckets."""

from duequeue.timers.ring import RingWheel
from duequeue.timers.timer import RANK_BITS, Handle
from duequeue.timers.wheel import T


class HashedWheel(RingWheel[T, dict[Handle, T]]):
    """A wheel that turns any number of times; a slot holds items of this turn and of later ones.

                      hand
                       ▼
          slot    0    1    2    3    4    5    6    7      8 slots
                [   ][   ][ 2 ][   ][ 4 ][   ][   ][ 7 ]    due in this turn
                          [18 ]     [12 ]                   due in a later one
                                    [20 ]

    Adding and cancelling cost O(1). The hand has to look at every item of the slots that it passes,
    so each item costs a look for every turn that it waits. `next_due` looks at one bucket after the
    other until it finds an item of this turn, and at all items if there is none.
    """

    def _put(self, tick: int, handle: Handle, item: T) -> None:
        slot = tick % self._size
        bucket = self._buckets.get(slot)
        if bucket is None:
            self._occupy(slot, {handle: item})
        else:
            bucket[handle] = item

    def _remove(self, tick: int, handle: Handle) -> bool:
        slot = tick % self._size
        bucket = self._buckets.get(slot)
        if bucket is None or handle not in bucket:
            return False
        del bucket[handle]
        if not bucket:
            self._vacate(slot)
        return True

    def _sweep(self, hand: int, tick: int) -> dict[Handle, T]:
        swept: dict[Handle, T] = {}
        end = self._end_of_tick(tick)
        for each in self._occupied_ticks(hand, tick):
            slot = each % self._size
            bucket = self._buckets[slot]
            due = [handle for handle in bucket if handle < end]
            if len(due) == len(bucket):
                swept.update(self._vacate(slot))
            else:
                swept.update((handle, bucket.pop(handle)) for handle in due)
        return swept

    def _find_soonest(self, hand: int) -> Handle:
        for each in self._occupied_ticks(hand, hand + self._size):
            first = min(self._buckets[each % self._size])
            if first < self._end_of_tick(each):
                return first
        return min(min(bucket) for bucket in self._buckets.values())

    def _end_of_tick(self, tick: int) -> int:
        """Return the number that is greater than the handles of this tick and of those before."""
        return (tick + 1) * self._tick << RANK_BITS
