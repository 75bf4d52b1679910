"""The pools of connections of this process, for those who want to know how much they are used."""

import threading
from typing import NamedTuple, Protocol
from weakref import WeakSet


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
