"""How the keys of a queue are divided into shards, and how their numbers are told apart.

Each shard is a queue of its own, in a slot of its own, with ids of its own. Outside, the number `n`
of shard `s` is `n * shards + s`.
"""

from collections.abc import Iterable
from functools import lru_cache
from itertools import count
from typing import NamedTuple, TypeVar
from zlib import crc32

from duequeue.port.listing import BurialId, BurialSelection, Place, Selection
from duequeue.port.store import Answer, Burial, Expiry, Lease, Release
from duequeue.stores.redis.keys import QueueKeys, escaped
from duequeue.stores.redis_client.servers import SLOTS, slot_of

Settled = TypeVar("Settled", Answer, Burial, Expiry, Release)


def shards_of(kind: str, shards: int) -> list[QueueKeys]:
    """Return the keys of each shard of a queue, which may have only one."""
    if shards == 1:
        return [QueueKeys(kind)]
    return [QueueKeys(kind, tag=tag) for tag in tags(kind, shards)]


@lru_cache(maxsize=256)
def tags(kind: str, shards: int) -> tuple[str, ...]:
    """Return the hash tags of the shards, whose slots are spread evenly over a cluster.

    The last part of a tag is chosen so that its slot is in the shard's own part of all slots.
    """
    return tuple(_tag(kind, number, shards) for number in range(shards))


def _tag(kind: str, number: int, shards: int) -> str:
    own = range(SLOTS * number // shards, SLOTS * (number + 1) // shards)
    tries = (f"{escaped(kind)}/{number}.{choice}" for choice in count())
    return next(name for name in tries if slot_of(name) in own)


class Shard(NamedTuple):
    """One of the shards."""

    number: int
    shards: int

    def outside(self, number: int) -> int:
        """Return the number by which a message or burial of this shard is known outside."""
        return number * self.shards + self.number

    def inside(self, number: int) -> int:
        """Return the last number of this shard that is not above a number from outside."""
        return (number - self.number) // self.shards

    def selection(self, wanted: Selection) -> Selection:
        """Return what this shard contributes to a listing."""
        if wanted.after is None:
            return wanted
        due_at, number = wanted.after
        return wanted._replace(after=Place(due_at, self.inside(number)))

    def burials(self, wanted: BurialSelection) -> BurialSelection:
        """Return what this shard contributes to a list of burials."""
        return wanted._replace(
            after=self.burial_inside(wanted.after), until=self.burial_inside(wanted.until)
        )

    def burial_inside(self, burial: BurialId) -> BurialId:
        """Return the last burial of this shard that is not after one from outside."""
        return BurialId(burial.buried_at, self.inside(burial.number))


def shard_of(key: str, shards: int) -> int:
    """Return the number of the shard that has a key; this must never change."""
    return crc32(key.encode()) % shards


def leases_by_shard(leases: Iterable[Lease], shards: int) -> dict[int, list[Lease]]:
    """Sort leases by shard, with the ids that they have there."""
    found: dict[int, list[Lease]] = {}
    for lease in leases:
        number, shard = divmod(lease.id, shards)
        found.setdefault(shard, []).append(lease._replace(id=number))
    return found


def settled_by_shard(settled: Iterable[Settled], shards: int) -> dict[int, list[Settled]]:
    """Do the same with items that have a lease."""
    found: dict[int, list[Settled]] = {}
    for each in settled:
        number, shard = divmod(each.lease.id, shards)
        found.setdefault(shard, []).append(each._replace(lease=each.lease._replace(id=number)))
    return found
