"""The names of the shards of a queue, each of which is in a slot of its own."""

from functools import lru_cache
from itertools import count

from duequeue.stores.redis.keys import QueueKeys, escaped
from duequeue.stores.redis_client.servers import SLOTS, slot_of


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
