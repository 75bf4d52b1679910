"""One queue in several shards, each of which is a store in a slot of its own.

A key is always in the same shard. What happens in one shard is atomic; what happens in several is
not, so a batch of offers may be stored in part when a node fails in the middle of it.

A poll takes the messages that are due first, over all shards. So it first reads the due times at
the front of each. Messages that are due at the same millisecond come in insertion order only if
they are in the same shard. Another poll at the same time may change which messages are first.
"""

from asyncio import CancelledError
from collections import Counter
from collections.abc import Collection, Sequence
from heapq import nsmallest

from duequeue.message import OfferOutcome
from duequeue.port.burial_table import StoredBurial
from duequeue.port.forecasting import Buckets, DueCounts
from duequeue.port.history_table import SettledRow
from duequeue.port.listing import Selection
from duequeue.port.store import (
    Answer,
    Burial,
    Claimed,
    Counts,
    Expiry,
    Extended,
    Lease,
    Limits,
    ListedMessage,
    Record,
    Release,
    ResponseLook,
    Steps,
    StoredMessage,
)
from duequeue.stores.redis.commands import Undo
from duequeue.stores.redis.every_shard import EveryShard
from duequeue.stores.redis.no_crons import NoCrons
from duequeue.stores.redis.sharded_burials import ShardedBurials
from duequeue.stores.redis.shards import leases_by_shard, settled_by_shard, shard_of
from duequeue.stores.redis.store import RedisStore


class ShardedStore:
    """Every operation of a store, on the shards that it concerns."""

    def __init__(self, stores: Sequence[RedisStore]) -> None:
        self._every = EveryShard(stores)
        self._count = len(stores)
        self.burials = ShardedBurials(self._every)
        self.cron = NoCrons()

    def offer(
        self,
        records: Sequence[Record],
        now: int,
        *,
        sender: str | None = None,
        hurried: bool = False,
    ) -> Steps[list[OfferOutcome]]:
        """Offer to each shard what belongs there."""
        parts: dict[int, list[int]] = {}
        for position, record in enumerate(records):
            parts.setdefault(shard_of(record.key, self._count), []).append(position)

        def offer(shard: int, positions: list[int]) -> Steps[list[OfferOutcome]]:
            part = [records[position] for position in positions]
            return self._every.stores[shard].offer(part, now, sender=sender, hurried=hurried)

        found = yield from self._every.each(parts, offer)
        outcomes = [OfferOutcome.IGNORED] * len(records)
        for shard, positions in parts.items():
            for position, outcome in zip(positions, found[shard], strict=True):
                outcomes[position] = outcome
        return outcomes

    def claim(self, limit: int, now: int, until: int, token: int) -> Steps[list[Claimed]]:
        """Claim from each shard as many as are among the first of all."""
        claimed: list[Claimed] = []
        may_be_more = True
        try:
            # If other polls were faster in those shards, other shards may still have some.
            while may_be_more and not claimed:
                fronts = yield from self._fronts(limit, now)
                claimed = yield from self._claim_first(fronts, limit, now, until, token)
                may_be_more = bool(fronts)
        except CancelledError:
            yield Undo([store.undo_claim(until, token) for store in self._every.stores])
            raise
        return claimed

    def claim_expired(self, limit: int, now: int, until: int, token: int) -> Steps[list[Expiry]]:
        """Look for them in each shard, and take a fair share of each."""
        most = -(-limit // self._count)
        found = yield from self._every.all(
            lambda store: store.claim_expired(most, now, until, token)
        )
        return [
            each._replace(lease=self._every.lease_outside(shard, each.lease))
            for shard, part in enumerate(found)
            for each in part
        ]

    def expire(self, expiries: Sequence[Expiry], now: int) -> Steps[set[int]]:
        """Expire them where they are."""
        parts = settled_by_shard(expiries, self._count)
        return self._every.won(parts, lambda store, part: store.expire(part, now))

    def ack(self, leases: Sequence[Lease], now: int) -> Steps[set[int]]:
        """Ack them where they are."""
        parts = leases_by_shard(leases, self._count)
        return self._every.won(parts, lambda store, part: store.ack(part, now))

    def answer(
        self, answers: Sequence[Answer], now: int, *, sender: str | None = None
    ) -> Steps[set[int]]:
        """Answer them where they are."""
        parts = settled_by_shard(answers, self._count)
        return self._every.won(parts, lambda store, part: store.answer(part, now, sender=sender))

    def response(self, key: str, now: int) -> Steps[ResponseLook]:
        """Look where the key is."""
        return self._every.of(key).response(key, now)

    def forget_response(self, key: str, now: int) -> Steps[bool]:
        """Forget it where the key is."""
        return self._every.of(key).forget_response(key, now)

    def extend(self, leases: Sequence[Lease], until: int) -> Steps[Extended]:
        """Extend them where they are."""
        parts = leases_by_shard(leases, self._count)

        def extend(store: RedisStore, part: list[Lease]) -> Steps[set[int]]:
            return (yield from store.extend(part, until)).won  # nothing is ever busy

        return Extended((yield from self._every.won(parts, extend)), busy=set())

    def release(self, releases: Sequence[Release]) -> Steps[set[int]]:
        """Release them where they are."""
        parts = settled_by_shard(releases, self._count)
        return self._every.won(parts, lambda store, part: store.release(part))

    def give_back(self, leases: Sequence[Lease]) -> Steps[set[int]]:
        """Give them back where they are."""
        parts = leases_by_shard(leases, self._count)
        return self._every.won(parts, lambda store, part: store.give_back(part))

    def bury(
        self, burials: Sequence[Burial], now: int, *, sender: str | None = None
    ) -> Steps[set[int]]:
        """Bury them where they are."""
        parts = settled_by_shard(burials, self._count)
        return self._every.won(parts, lambda store, part: store.bury(part, now, sender=sender))

    def read(self, key: str) -> Steps[StoredMessage | StoredBurial | None]:
        """Read it where it is."""
        shard = shard_of(key, self._count)
        found = yield from self._every.stores[shard].read(key)
        if isinstance(found, StoredBurial):
            return found._replace(number=self._every.shards[shard].outside(found.number))
        return found

    def listed(self, selection: Selection, now: int) -> Steps[list[ListedMessage]]:
        """Merge the lists of all shards."""
        found = yield from self._every.parts(
            lambda store, shard: store.listed(shard.selection(selection), now)
        )
        merged = (
            each._replace(id=self._every.shards[number].outside(each.id))
            for number, part in found.items()
            for each in part
        )
        return nsmallest(selection.limit, merged, key=lambda each: (each.message.due_at, each.id))

    def reschedule(self, key: str, due_at: int, now: int) -> Steps[bool]:
        """Reschedule it where it is."""
        return self._every.of(key).reschedule(key, due_at, now)

    def drop(self, key: str, now: int, *, sender: str | None = None) -> Steps[bool]:
        """Drop it where it is."""
        return self._every.of(key).drop(key, now, sender=sender)

    def drop_all(self, now: int) -> Steps[int]:
        """Empty every shard."""
        return sum((yield from self._every.all(lambda store: store.drop_all(now))))

    def counts(self, now: int) -> Steps[Counts]:
        """Add up the shards."""
        found = yield from self._every.all(lambda store: store.counts(now))
        oldest = _earliest([each.oldest_due_at for each in found])
        nearest = _earliest([each.next_due_at for each in found])
        sums = [sum(column) for column in zip(*(each[:4] for each in found), strict=True)]
        return Counts(sums[0], sums[1], sums[2], sums[3], oldest, nearest)

    def forecast(self, now: int, buckets: Buckets) -> Steps[DueCounts]:
        """Add up the shards."""
        found = yield from self._every.all(lambda store: store.forecast(now, buckets))
        ahead: Counter[int] = Counter()
        for each in found:
            ahead.update(each.ahead)
        return DueCounts(sum(each.overdue for each in found), dict(ahead))

    def next_due(self, now: int) -> Steps[int | None]:
        """Return the earliest of the shards."""
        return _earliest((yield from self._every.all(lambda store: store.next_due(now))))

    def earliest_due(self, now: int) -> Steps[int | None]:
        """Return the earliest of the shards."""
        return _earliest((yield from self._every.all(lambda store: store.earliest_due(now))))

    def delete_old(self, limits: Limits, limit: int) -> Steps[bool]:
        """Delete in every shard."""
        return any((yield from self._every.all(lambda store: store.delete_old(limits, limit))))

    def settled(self, limit: int, key: str | None = None) -> Steps[list[SettledRow]]:  # noqa: ARG002 - no history is kept
        """Return nothing, because a queue with shards keeps no history."""
        yield from ()
        return []

    def prepare_history(self, now: int) -> Steps[None]:  # noqa: ARG002 - no history is kept
        """Do nothing."""
        yield from ()

    def announce(self, due_at: int) -> None:
        """Announce it to every shard."""
        for store in self._every.stores:
            store.announce(due_at)

    def notify(self, due_at: int) -> Steps[None]:
        """Notify through one shard, since a process that waits is entered in all of them."""
        return self._every.stores[0].notify(due_at)

    def borrowed(self) -> "ShardedStore":
        """Return this store; there are no transactions of a caller."""
        return self

    def _fronts(self, limit: int, now: int) -> Steps[list[tuple[int, int]]]:
        """Return due time and shard of the first messages that are due in each shard."""
        found = yield from self._every.all(lambda store: store.due_times(limit, now))
        return [(due_at, shard) for shard, front in enumerate(found) for due_at in front]

    def _claim_first(
        self, fronts: Sequence[tuple[int, int]], limit: int, now: int, until: int, token: int
    ) -> Steps[list[Claimed]]:
        """Claim the first of those that are due."""
        quotas = Counter(shard for _, shard in nsmallest(limit, fronts))
        # One of the shards wakes another process for the rest.
        waker = min(quotas, default=0) if len(fronts) > limit else None

        def claim(shard: int, quota: int) -> Steps[list[Claimed]]:
            store, leaves_others = self._every.stores[shard], shard == waker
            return store.claim(quota, now, until, token, leaves_others=leaves_others)

        # A claim that finds nothing enters this process among those that wait, in every shard.
        found = yield from self._every.each(
            quotas or dict.fromkeys(range(self._count), limit), claim
        )
        claimed = [
            each._replace(lease=self._every.lease_outside(shard, each.lease))
            for shard, part in found.items()
            for each in part
        ]
        claimed.sort(key=lambda each: (each.due_at, each.lease.id))
        if len(claimed) > limit:  # all shards were empty a moment ago
            yield from self.give_back([each.lease for each in claimed[limit:]])
        return claimed[:limit]


def _earliest(instants: Collection[int | None]) -> int | None:
    return min((each for each in instants if each is not None), default=None)
