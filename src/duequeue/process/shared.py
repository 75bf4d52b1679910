"""One object per name in this process, as long as it is referenced; and the pools in use."""

import os
import threading
from collections.abc import Callable, Hashable
from typing import Generic, NamedTuple, Protocol, TypeVar
from weakref import WeakSet, WeakValueDictionary

T = TypeVar("T")


class Shared(Generic[T]):
    """Returns the same object for the same name."""

    def __init__(self, make: Callable[[], T] | None = None) -> None:
        self._make = make
        self._begin()
        if hasattr(os, "register_at_fork"):  # not on Windows
            os.register_at_fork(after_in_child=self._begin)

    def get(self, name: Hashable, make: Callable[[], T] | None = None) -> T:
        """Return the object of that name, and make it if there is none."""
        make = make or self._make
        with self._lock:
            found = self._alive.get(name)
            if found is None:
                if make is None:
                    raise LookupError(f"there is no {name!r}, and no function was given to make it")
                found = self._alive[name] = make()
            return found

    def _begin(self) -> None:
        # A fork does not have the threads that work on these objects or hold the lock.
        self._lock = threading.Lock()
        self._alive: WeakValueDictionary[Hashable, T] = WeakValueDictionary()


class PoolUse(NamedTuple):
    """How many calls a pool serves at a time, and how many it serves now."""

    place: str
    size: int
    used: int


class UsedPool(Protocol):
    """A pool that knows how much it is used."""

    @property
    def use(self) -> PoolUse | None:
        """How much it is used, or None if nobody has it open."""


_pools: "WeakSet[UsedPool]" = WeakSet()
_adding = threading.Lock()


def note_pool(pool: UsedPool) -> None:
    """Count a pool in for as long as it exists."""
    with _adding:
        _pools.add(pool)


def pools_in_use() -> list[PoolUse]:
    """Return the use of each open pool."""
    with _adding:
        found = list(_pools)
    return [use for pool in found if (use := pool.use) is not None]
