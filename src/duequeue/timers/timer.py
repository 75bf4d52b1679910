"""What every timer can do, and the handles that all of them share."""

from typing import Protocol, TypeAlias, TypeVar

T = TypeVar("T")

# One integer that holds the due time in its upper bits and the rank among ties in its lower ones.
# Python compares, sorts and hashes integers faster than anything else that could be a handle.
Handle: TypeAlias = int

RANK_BITS = 48


def not_millis(at: object, argument: str = "at") -> TypeError:
    """Return the error for an instant of the wrong type."""
    name = type(at).__name__
    return TypeError(f"{argument} must be whole milliseconds, as an int, not {name}")


def due_of(handle: Handle) -> int:
    """Return the due time of a handle."""
    return handle >> RANK_BITS


def rank_of(handle: Handle) -> int:
    """Return the rank among ties of a handle."""
    return handle & ((1 << RANK_BITS) - 1)


def end_of(now: int) -> int:
    """Return the least number above the handles of all items that are due at `now`."""
    try:
        return (now + 1) << RANK_BITS
    except TypeError:
        raise not_millis(now, "now") from None


class Timer(Protocol[T]):
    """Holds items until they are due; instants are whole milliseconds from any origin.

    A timer has no clock. It learns the time from `advance` and `first`, and the time may jump
    forwards and backwards: an item is due as long as its instant has come, and not before. A timer
    is not safe to share among threads; a `DelayQueue` is.
    """

    def schedule(self, at: int, item: T, rank: int | None = None) -> Handle:
        """Add an item that is due at `at`, which may have passed.

        Items due at the same instant come in the order of their ranks, which must then differ, and
        without ranks in the order in which they were added.
        """

    def cancel(self, handle: Handle) -> bool:
        """Remove an item; return False if it is no longer there."""

    def advance(self, now: int) -> list[T]:
        """Remove and return the items that are due at `now`, in due order."""

    def first(self, now: int) -> tuple[Handle, T] | None:
        """Return the first item that is due at `now`, and its handle, without removing it."""

    def next_due(self) -> int | None:
        """Return the instant at which the first item is due, or None if there are no items."""

    def __len__(self) -> int:
        """Return the number of items."""
