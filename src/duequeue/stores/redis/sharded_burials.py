"""The burials of all shards of a queue."""

from heapq import nsmallest

from duequeue.port.burial_table import StoredBurial
from duequeue.port.listing import BurialId, BurialSelection, RevivedBurials
from duequeue.port.store import Steps
from duequeue.stores.redis.every_shard import EveryShard
from duequeue.stores.redis.shards import shard_of


class ShardedBurials:
    """Merges what the shards have; all burials of a key are in the same one."""

    def __init__(self, every: EveryShard) -> None:
        self._every = every

    def listed(self, selection: BurialSelection) -> Steps[list[StoredBurial]]:
        """Merge the lists of all shards."""
        found = yield from self._every.parts(
            lambda store, shard: store.burials.listed(shard.burials(selection))
        )
        merged = (
            each._replace(number=self._every.shards[number].outside(each.number))
            for number, part in found.items()
            for each in part
        )
        return nsmallest(selection.limit, merged, key=lambda each: (each.buried_at, each.number))

    def last(self) -> Steps[BurialId | None]:
        """Return the last of the shards."""
        found = yield from self._every.all(lambda store: store.burials.last())
        return max(self._every.burials_outside(found), default=None)

    def revive(
        self, key: str, due_at: int, now: int, burial: BurialId | None = None
    ) -> Steps[bool]:
        """Revive it where it is."""
        number, store = shard_of(key, self._every.count), self._every.of(key)
        if burial is None:
            return (yield from store.burials.revive(key, due_at, now))
        if burial.number % self._every.count != number:
            return False  # it is the burial of another key
        inside = self._every.shards[number].burial_inside(burial)
        return (yield from store.burials.revive(key, due_at, now, inside))

    def revive_all(
        self, selection: BurialSelection, due_at: int, now: int
    ) -> Steps[RevivedBurials]:
        """Revive in every shard, and go on after the one that came least far."""
        found = yield from self._every.parts(
            lambda store, shard: store.burials.revive_all(shard.burials(selection), due_at, now)
        )
        lasts = self._every.burials_outside([each.last for each in found.values()])
        revived = sum(each.revived for each in found.values())
        return RevivedBurials(revived, min(lasts, default=None))

    def delete(self, burial: BurialId) -> Steps[bool]:
        """Delete it where it is."""
        shard = self._every.shards[burial.number % self._every.count]
        return self._every.stores[shard.number].burials.delete(shard.burial_inside(burial))

    def purge(self, before: int) -> Steps[int]:
        """Purge every shard."""
        return sum((yield from self._every.all(lambda store: store.burials.purge(before))))
