"""One queue in several shards, each of which is a store: which operation goes where.

A key is always in the same shard. What happens in one shard is atomic; what happens in several is
not, so a batch of offers may be stored in part when a node fails in the middle of it.

A poll takes the messages that are due first, over all shards. So it first reads the due times at
the front of each. Messages that are due at the same millisecond come in insertion order only if
they are in the same shard. Another poll at the same time may change which messages are first.
"""

from asyncio import CancelledError
from collections import Counter
from collections.abc import Mapping, Sequence
from heapq import nsmallest
from typing import NoReturn, Protocol

from duequeue.errors import StoreError
from duequeue.message import OfferOutcome
from duequeue.port.burial_table import BurialTable, StoredBurial
from duequeue.port.cron_table import CronListing
from duequeue.port.history_table import SettledRow
from duequeue.port.listing import (
    BurialId,
    BurialSelection,
    DueCounts,
    Position,
    RevivedBurials,
    Selection,
)
from duequeue.port.store import (
    Claimed,
    Counts,
    Expiry,
    Extended,
    Lease,
    ListedMessage,
    Record,
    Steps,
    Store,
    StoredMessage,
)
from duequeue.stores.shards import Shards, Undo, by_key, by_lease, joined, parts_of, shard_of


class Shard(Store, Protocol):
    """A store that can be one of several."""

    def due_times(self, limit: int, now: int) -> Steps[list[int]]:
        """Return when the first messages that are due now were due."""

    def claim(
        self, limit: int, now: int, until: int, token: int, *, leaves_others: bool = False
    ) -> Steps[list[Claimed]]:
        """Claim; if it leaves others that are due in another shard, wake somebody for them."""

    def undo_claim(self, until: int, token: int) -> object:
        """Return the command that gives back the messages of a claim that was cancelled."""


def _earliest(instants: Sequence[int | None]) -> int | None:
    return min((each for each in instants if each is not None), default=None)


def _added(found: Sequence[Counts]) -> Counts:
    due, leased, future, buried, oldest, nearest = zip(*found, strict=True)
    return Counts(
        sum(due), sum(leased), sum(future), sum(buried), _earliest(oldest), _earliest(nearest)
    )


def _added_up(found: Sequence[DueCounts]) -> DueCounts:
    ahead: Counter[int] = Counter()
    for each in found:
        ahead.update(each.ahead)
    return DueCounts(sum(each.overdue for each in found), dict(ahead))


def _nothing(found: Sequence[None]) -> None:
    del found


class ShardedStore(Shards[Shard]):
    """Every operation of a store; see `port.store.Store`."""

    def __init__(self, stores: Sequence[Shard]) -> None:
        super().__init__(stores)
        self.burials = ShardedBurials([store.burials for store in stores])
        self.cron = NoCrons()

    response = by_key(Store.response)
    forget_response = by_key(Store.forget_response)
    reschedule = by_key(Store.reschedule)
    drop = by_key(Store.drop)

    expire = by_lease(Store.expire)
    ack = by_lease(Store.ack)
    answer = by_lease(Store.answer)
    release = by_lease(Store.release)
    give_back = by_lease(Store.give_back)
    bury = by_lease(Store.bury)

    drop_all = joined(Store.drop_all, sum)
    counts = joined(Store.counts, _added)
    forecast = joined(Store.forecast, _added_up)
    next_due = joined(Store.next_due, _earliest)
    earliest_due = joined(Store.earliest_due, _earliest)
    delete_old = joined(Store.delete_old, any)
    prepare_history = joined(Store.prepare_history, _nothing)

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

        def offer(store: Shard, positions: list[int]) -> Steps[list[OfferOutcome]]:
            part = [records[position] for position in positions]
            return store.offer(part, now, sender=sender, hurried=hurried)

        found = yield from self._each(parts, offer)
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
                found = yield from self._all(lambda store, _: store.due_times(limit, now))
                fronts = [(due_at, shard) for shard, front in found.items() for due_at in front]
                claimed = yield from self._claim_first(fronts, limit, now, until, token)
                may_be_more = bool(fronts)
        except CancelledError:
            yield Undo([store.undo_claim(until, token) for store in self._stores])
            raise
        return claimed

    def claim_expired(self, limit: int, now: int, until: int, token: int) -> Steps[list[Expiry]]:
        """Look for them in each shard, and take a fair share of each."""
        share = -(-limit // self._count)
        found = yield from self._all(lambda store, _: store.claim_expired(share, now, until, token))
        return self._leased_outside(found)

    def extend(self, leases: Sequence[Lease], until: int) -> Steps[Extended]:
        """Extend them where they are."""
        found = yield from self._each(
            parts_of(leases, self._count), lambda store, part: store.extend(part, until)
        )
        won, busy = (
            {self._outside(shard, number) for shard, each in found.items() for number in each[of]}
            for of in (0, 1)
        )
        return Extended(won, busy)

    def read(self, key: str) -> Steps[StoredMessage | StoredBurial | None]:
        """Read it where it is."""
        shard = shard_of(key, self._count)
        found = yield from self._stores[shard].read(key)
        if isinstance(found, StoredBurial):
            return found._replace(number=self._outside(shard, found.number))
        return found

    def listed(self, selection: Selection, now: int) -> Steps[list[ListedMessage]]:
        """Merge the lists of all shards."""

        def listed(store: Shard, shard: int) -> Steps[list[ListedMessage]]:
            after = selection.after
            if after is not None:
                after = Position(after.due_at, self._inside(shard, after.id))
            return store.listed(selection._replace(after=after), now)

        found = yield from self._all(listed)
        merged = (
            each._replace(id=self._outside(shard, each.id))
            for shard, part in found.items()
            for each in part
        )
        return nsmallest(selection.limit, merged, key=lambda each: (each.message.due_at, each.id))

    def settled(self, limit: int, key: str | None = None) -> Steps[list[SettledRow]]:  # noqa: ARG002 - the port's signature
        """Return nothing, because no shard keeps a history."""
        yield from ()
        return []

    def announce(self, due_at: int) -> None:
        """Announce it to every shard."""
        for store in self._stores:
            store.announce(due_at)

    def notify(self, due_at: int) -> Steps[None]:
        """Notify through one shard, since a process that waits is entered in all of them."""
        return self._stores[0].notify(due_at)

    def _claim_first(
        self, fronts: Sequence[tuple[int, int]], limit: int, now: int, until: int, token: int
    ) -> Steps[list[Claimed]]:
        """Claim the first of those that are due."""
        quotas = Counter(shard for _, shard in nsmallest(limit, fronts))
        # One of the shards wakes another process for the rest.
        waker = min(quotas, default=0) if len(fronts) > limit else None
        # A claim that finds nothing enters this process among those that wait, in every shard.
        wanted = quotas or dict.fromkeys(range(self._count), limit)

        def claim(store: Shard, part: tuple[int, bool]) -> Steps[list[Claimed]]:
            quota, leaves_others = part
            return store.claim(quota, now, until, token, leaves_others=leaves_others)

        found = yield from self._each(
            {shard: (quota, shard == waker) for shard, quota in wanted.items()}, claim
        )
        claimed: list[Claimed] = self._leased_outside(found)
        claimed.sort(key=lambda each: (each.due_at, each.lease.id))
        if len(claimed) > limit:  # all shards were empty a moment ago
            yield from self.give_back([each.lease for each in claimed[limit:]])
        return claimed[:limit]


class ShardedBurials(Shards[BurialTable]):
    """Merges what the shards have; all burials of a key are in the same one."""

    purge = joined(BurialTable.purge, sum)

    def listed(self, selection: BurialSelection) -> Steps[list[StoredBurial]]:
        """Merge the lists of all shards."""
        found = yield from self._all(
            lambda store, shard: store.listed(self._selected(shard, selection))
        )
        merged = (
            each._replace(number=self._outside(shard, each.number))
            for shard, part in found.items()
            for each in part
        )
        return nsmallest(selection.limit, merged, key=lambda each: (each.buried_at, each.number))

    def last(self) -> Steps[BurialId | None]:
        """Return the last of the shards."""
        found = yield from self._all(lambda store, _: store.last())
        return max(self._burials_outside(found), default=None)

    def revive(
        self, key: str, due_at: int, now: int, burial: BurialId | None = None
    ) -> Steps[bool]:
        """Revive it where it is."""
        shard = shard_of(key, self._count)
        if burial is not None:
            if burial.number % self._count != shard:
                return False  # it is the burial of another key
            burial = self._burial_inside(shard, burial)
        return (yield from self._stores[shard].revive(key, due_at, now, burial))

    def revive_all(
        self, selection: BurialSelection, due_at: int, now: int
    ) -> Steps[RevivedBurials]:
        """Revive in every shard, and go on after the one that came least far."""
        found = yield from self._all(
            lambda store, shard: store.revive_all(self._selected(shard, selection), due_at, now)
        )
        lasts = self._burials_outside({shard: each.last for shard, each in found.items()})
        revived = sum(each.revived for each in found.values())
        return RevivedBurials(revived, min(lasts, default=None))

    def delete(self, burial: BurialId) -> Steps[bool]:
        """Delete it where it is."""
        shard = burial.number % self._count
        return self._stores[shard].delete(self._burial_inside(shard, burial))

    def _selected(self, shard: int, selection: BurialSelection) -> BurialSelection:
        """Return what a shard contributes to a list of burials."""
        return selection._replace(
            after=self._burial_inside(shard, selection.after),
            until=self._burial_inside(shard, selection.until),
        )

    def _burials_outside(self, found: Mapping[int, BurialId | None]) -> list[BurialId]:
        return [
            each._replace(number=self._outside(shard, each.number))
            for shard, each in found.items()
            if each is not None
        ]


class NoCrons:
    """Refuses crons, because their ticks and their notes would be in different shards."""

    def _refuse(self, *given: object, **named: object) -> NoReturn:  # noqa: ARG002 - it refuses all
        raise StoreError(
            "a queue with shards in its url has no crons, because a tick must be in the same slot "
            "as the record of its cron; keep the crons in a queue without shards"
        )

    look = install = uninstall = set_paused = _refuse

    def listing(self) -> Steps[list[CronListing]]:
        """Return nothing."""
        yield from ()
        return []
