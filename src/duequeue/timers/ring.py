"""A wheel with a fixed number of slots in a circle."""

from abc import ABC
from collections.abc import Iterator
from typing import Generic, TypeVar

from duequeue.timers.wheel import Wheel, at_least_one

T = TypeVar("T")
B = TypeVar("B")


class RingWheel(Wheel[T], ABC, Generic[T, B]):
    """A tick falls into the slot with its number, counted modulo the number of slots.

    A slot that holds something has a bucket, and a 1 in an array of bytes. The hand finds the next
    1 at the speed of memory, so that it does not matter how many empty slots it passes.
    """

    def __init__(self, slots: int = 4096, tick: int = 256) -> None:
        super().__init__(tick)
        self._size = at_least_one(slots, "slots")
        self._buckets: dict[int, B] = {}
        self._occupied = bytearray(slots)

    def _occupy(self, slot: int, bucket: B) -> B:
        self._buckets[slot] = bucket
        self._occupied[slot] = 1
        return bucket

    def _vacate(self, slot: int) -> B:
        self._occupied[slot] = 0
        return self._buckets.pop(slot)

    def _occupied_ticks(self, hand: int, tick: int) -> Iterator[int]:
        """Yield the ticks after `hand` until `tick` whose slots hold something, for one turn."""
        each, size = hand + 1, self._size
        last = min(tick, hand + size)
        while each <= last:
            slot = each % size
            found = self._occupied.find(1, slot, slot + last - each + 1)
            if found < 0:
                each += size - slot
            else:
                yield each + found - slot
                each += found - slot + 1
