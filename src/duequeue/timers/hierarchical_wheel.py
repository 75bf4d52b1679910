"""A hierarchy of wheels."""

from duequeue.timers.timer import Handle, due_of, end_of
from duequeue.timers.wheel import T, Wheel

_BITS = 6
_SLOTS = 1 << _BITS


class HierarchicalWheel(Wheel[T]):
    """Wheels like the hands of a clock: a slot of one spans a whole turn of the wheel below it.

        level 2   [ 0 ][ 1 ][ 2 ][ 3 ] …       a slot is 4096 ms; an item waits in a high level
                         │                     until the hand comes to its slot,
        level 1   [ 0 ][ 1 ] … [63 ]           a slot is 64 ms;
                                 │             then it moves down,
        level 0   [ 0 ][ 1 ] … [63 ]           a slot is 1 ms
                                 ▼             until it is due

    Instants are written in base 64, as a clock writes them in base 60. An item is on the level of
    the highest digit in which it differs from the hand, in the slot of that digit. So everything on
    a level is due before everything on the levels above, and there are as many levels as the
    farthest item needs. Adding and cancelling cost O(1), and an item moves down at most once for
    each level. `next_due` looks at the items of one bucket.
    """

    def __init__(self) -> None:
        super().__init__(tick=1)
        self._levels: list[dict[int, dict[Handle, T]]] = []
        self._beginning = 0

    def _start(self, hand: int) -> int:
        self._beginning = hand  # from which instants are counted here, so that none is negative
        return super()._start(hand)

    def _put(self, tick: int, handle: Handle, item: T) -> None:
        level, slot = self._place_of(tick)
        while level >= len(self._levels):
            self._levels.append({})
        buckets = self._levels[level]
        bucket = buckets.get(slot)
        if bucket is None:
            buckets[slot] = {handle: item}
        else:
            bucket[handle] = item

    def _remove(self, tick: int, handle: Handle) -> bool:
        level, slot = self._place_of(tick)
        buckets = self._levels[level] if level < len(self._levels) else {}
        bucket = buckets.get(slot)
        if bucket is None or handle not in bucket:
            return False
        del bucket[handle]
        if not bucket:
            del buckets[slot]
        return True

    def _sweep(self, hand: int, tick: int) -> dict[Handle, T]:
        self._hand = tick  # what moves down is placed by the new hand
        swept: dict[Handle, T] = {}
        end = end_of(tick)
        before, now = hand - self._beginning, tick - self._beginning
        for level, buckets in enumerate(self._levels):
            before_here, here = before >> _BITS * level, now >> _BITS * level
            if before_here == here:
                break  # neither this level's hand has moved, nor those above
            is_new_turn = before_here >> _BITS != here >> _BITS
            digit = _SLOTS if is_new_turn else here % _SLOTS
            for slot in [slot for slot in buckets if slot < digit]:
                swept.update(buckets.pop(slot))
            for handle, item in buckets.pop(digit, {}).items():
                if handle < end:
                    swept[handle] = item
                else:
                    self._put(due_of(handle), handle, item)
        return swept

    def _find_soonest(self, hand: int) -> Handle:  # noqa: ARG002 - the wheel's signature
        buckets = next(buckets for buckets in self._levels if buckets)
        return min(buckets[min(buckets)])

    def _place_of(self, tick: int) -> tuple[int, int]:
        """Return the level and the slot of an instant ahead of the hand."""
        instant = tick - self._beginning
        hand = (self._hand or 0) - self._beginning
        level = ((instant ^ hand).bit_length() - 1) // _BITS
        return level, (instant >> _BITS * level) % _SLOTS
