"""A simple wheel."""

from duequeue.errors import InvalidArgument
from duequeue.timers.hashed_wheel import HashedWheel
from duequeue.timers.timer import Handle
from duequeue.timers.wheel import T


class SimpleWheel(HashedWheel[T]):
    """A wheel that turns only once around what it holds; items beyond its span are refused.

                      hand
                       ▼
          slot    0    1    2    3    4    5    6    7      8 slots
                [ 8 ][ 9 ][ 2 ][   ][ 4 ][   ][   ][ 7 ]    due from 2 to 9; 10 is refused

    Everything in a slot is due in the same tick, so the hand takes whole slots and looks at nothing
    else. The span is the number of slots times the tick, 18 hours by default, and begins after the
    hand. Adding an item beyond it raises a ValueError.
    """

    def __init__(self, slots: int = 65_536, tick: int = 1024) -> None:
        super().__init__(slots, tick)

    def _put(self, tick: int, handle: Handle, item: T) -> None:
        hand = tick if self._hand is None else self._hand
        if tick - hand > self._size:
            last = (hand + self._size + 1) * self._tick - 1
            raise InvalidArgument(
                "at",
                f"must be at most {last}, because this wheel has {self._size} slots of "
                f"{self._tick} ms; use more slots, a longer tick, or another timer",
            )
        super()._put(tick, handle, item)

    def _sweep(self, hand: int, tick: int) -> dict[Handle, T]:
        swept: dict[Handle, T] = {}
        for each in self._occupied_ticks(hand, tick):
            swept.update(self._vacate(each % self._size))
        return swept

    def _find_soonest(self, hand: int) -> Handle:
        first = next(self._occupied_ticks(hand, hand + self._size))
        return min(self._buckets[first % self._size])
