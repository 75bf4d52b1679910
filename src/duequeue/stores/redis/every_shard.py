"""Operations on some or all shards of a queue at once."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from duequeue.port.listing import BurialId
from duequeue.port.store import Lease, Steps
from duequeue.stores.redis.shards import Shard, shard_of
from duequeue.stores.redis.side_by_side import side_by_side
from duequeue.stores.redis.store import RedisStore

T = TypeVar("T")
Item = TypeVar("Item")


class EveryShard:
    """The stores of all shards, by their numbers."""

    def __init__(self, stores: Sequence[RedisStore]) -> None:
        self.stores = stores
        self.count = len(stores)
        self.shards = [Shard(number, self.count) for number in range(self.count)]

    def of(self, key: str) -> RedisStore:
        """Return the store that has a key."""
        return self.stores[shard_of(key, self.count)]

    def all(self, operation: Callable[[RedisStore], Steps[T]]) -> Steps[list[T]]:
        """Run an operation on all shards."""
        return side_by_side([operation(store) for store in self.stores])

    def parts(self, operation: Callable[[RedisStore, Shard], Steps[T]]) -> Steps[dict[int, T]]:
        """Run on each shard an operation that depends on the shard."""
        numbered = dict(enumerate(self.shards))
        return self.each(numbered, lambda number, shard: operation(self.stores[number], shard))

    def each(
        self, parts: Mapping[int, Item], operation: Callable[[int, Item], Steps[T]]
    ) -> Steps[dict[int, T]]:
        """Run an operation on some shards, each with a part of the work."""
        steps = [operation(shard, part) for shard, part in parts.items()]
        return dict(zip(parts, (yield from side_by_side(steps)), strict=True))

    def won(
        self,
        parts: Mapping[int, list[Item]],
        settle: Callable[[RedisStore, list[Item]], Steps[set[int]]],
    ) -> Steps[set[int]]:
        """Settle messages, and return the ids of those that were held."""
        found = yield from self.each(parts, lambda shard, part: settle(self.stores[shard], part))
        return {self.shards[shard].outside(each) for shard, won in found.items() for each in won}

    def lease_outside(self, shard: int, lease: Lease) -> Lease:
        """Return a lease with the id by which it is known outside."""
        return lease._replace(id=self.shards[shard].outside(lease.id))

    def burials_outside(self, found: Sequence[BurialId | None]) -> list[BurialId]:
        """Return one burial of each shard, where there is one, as it is known outside."""
        return [
            BurialId(each.buried_at, self.shards[number].outside(each.number))
            for number, each in enumerate(found)
            if each is not None
        ]
