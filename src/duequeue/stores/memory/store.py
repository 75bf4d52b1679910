"""The messages of one kind in a table of this process; see `port.store.Store`."""

from collections import Counter
from collections.abc import Sequence
from heapq import nsmallest
from operator import attrgetter

from duequeue.drive.steps import at_once
from duequeue.message import OfferOutcome
from duequeue.port.burial_table import StoredBurial
from duequeue.port.fencing import token_after, token_given_back
from duequeue.port.history_table import SettledRow
from duequeue.port.listing import Buckets, DueCounts, Position, Selection
from duequeue.port.store import (
    DROPPED,
    KEEP,
    AgeLimits,
    Answer,
    Burial,
    Claimed,
    Counts,
    Expiry,
    Extended,
    Lease,
    ListedMessage,
    NoUpkeep,
    Record,
    Release,
    ResponseLook,
    StoredMessage,
    StoredResponse,
)
from duequeue.stores.memory.burials import MemoryBurials
from duequeue.stores.memory.cron_table import MemoryCrons, MemoryCronTable
from duequeue.stores.memory.history_table import MemorySettling
from duequeue.stores.memory.table import MemoryMessage, MemoryTable


class MemoryStore(NoUpkeep):
    """Every operation of a store, done without waiting."""

    def __init__(self, table: MemoryTable, settling: MemorySettling, crons: MemoryCrons) -> None:
        self._table = table
        self._settling = settling
        self.cron = MemoryCronTable(table, settling, crons, self._offer)
        self.burials = MemoryBurials(table, self.cron, self._offer)

    @at_once
    def offer(
        self,
        records: Sequence[Record],
        now: int,
        *,
        sender: str | None = None,  # noqa: ARG002 - no other process can reach this
        hurried: bool = False,  # noqa: ARG002 - no lock is held for long
    ) -> list[OfferOutcome]:
        """Offer one by one."""
        return [self._offer(record, now) for record in records]

    @at_once
    def claim(self, limit: int, now: int, until: int, token: int) -> list[Claimed]:
        """Take what is due first."""
        claimed: list[Claimed] = []
        while len(claimed) < limit and (entry := self._table.take_due(now)) is not None:
            entry.leased_until, entry.attempt = until, entry.attempt + 1
            entry.token = token_after(entry.token, token)
            self._table.place(entry)
            lease = Lease(entry.id, entry.token, now, entry.key)
            facts = (entry.payload, entry.asked_at, entry.attempt, entry.headers, entry.due_at)
            claimed.append(Claimed(lease, entry.key, *facts, entry.expires_at))
        return claimed

    @at_once
    def claim_expired(self, limit: int, now: int, until: int, token: int) -> list[Expiry]:
        """Look through those that are due first."""
        found = self._table.expired(limit, now)
        for entry in found:
            entry.leased_until, entry.token = until, token
            self._table.place(entry)
        return [Expiry(Lease(each.id, token, now, each.key), each.attempt) for each in found]

    @at_once
    def expire(self, expiries: Sequence[Expiry], now: int) -> set[int]:
        """Remove the messages that are still held and have expired."""
        return {
            self._settling.expire(entry, attempts, now)
            for lease, attempts in expiries
            for entry, _ in self._held([lease])
            if entry.expires_at is not None and entry.expires_at <= now
        }

    @at_once
    def ack(self, leases: Sequence[Lease], now: int) -> set[int]:
        """Remove the messages that are still held."""
        return {self._settling.ack(entry, lease, now) for entry, lease in self._held(leases)}

    @at_once
    def answer(
        self,
        answers: Sequence[Answer],
        now: int,
        *,
        sender: str | None = None,  # noqa: ARG002 - no other process can reach this
    ) -> set[int]:
        """Remove the messages that are still held, and keep the responses."""
        won: set[int] = set()
        for lease, payload, expires_at in answers:
            for entry, _ in self._held([lease]):
                won.add(self._settling.ack(entry, lease, now))
                response = StoredResponse(payload, None, now)
                self._table.responses.put(entry.key, response, expires_at, now)
        return won

    @at_once
    def response(self, key: str, now: int) -> ResponseLook:
        """Look up the message and the response of a key."""
        return ResponseLook(key in self._table.by_key, self._table.responses.find(key, now))

    @at_once
    def forget_response(self, key: str, now: int) -> bool:
        """Remove by key."""
        found = self._table.responses.find(key, now)
        self._table.responses.forget(key)
        return found is not None

    @at_once
    def extend(self, leases: Sequence[Lease], until: int) -> Extended:
        """Move the end of the leases that are still held."""
        won = {self._table.lease(entry, until) for entry, _ in self._held(leases)}
        return Extended(won, busy=set())

    @at_once
    def release(self, releases: Sequence[Release]) -> set[int]:
        """Put the messages that are still held back into due order."""
        return {
            self._table.reschedule(entry, due_at)
            for lease, due_at in releases
            for entry, _ in self._held([lease])
        }

    @at_once
    def give_back(self, leases: Sequence[Lease]) -> set[int]:
        """Put the messages that are still held back where they were."""
        held = [entry for entry, _ in self._held(leases)]
        for entry in held:
            entry.attempt -= 1
            kept = token_given_back(entry.token)
            self._table.reschedule(entry, entry.due_at)
            entry.token = kept
        return {entry.id for entry in held}

    @at_once
    def bury(
        self,
        burials: Sequence[Burial],
        now: int,
        *,
        sender: str | None = None,  # noqa: ARG002 - no other process can reach this
    ) -> set[int]:
        """Move the messages that are still held to the buried ones."""
        won: set[int] = set()
        for lease, attempts, reason, keep in burials:
            for entry, _ in self._held([lease]):
                self._table.bury(entry, attempts, reason, now)
                won.add(self._settling.bury(entry, lease, attempts, now))
                self._refuse(entry.key, reason, keep, now)
        return won

    @at_once
    def read(self, key: str) -> StoredMessage | StoredBurial | None:
        """Look among the live messages, then among the buried ones."""
        entry = self._table.by_key.get(key)
        return self.burials.newest(key) if entry is None else _stored(entry)

    @at_once
    def listed(self, selection: Selection, now: int) -> list[ListedMessage]:
        """Walk over all messages."""
        window = selection.window(now)
        found = (
            entry
            for entry in self._table.by_key.values()
            if window.has(Position(entry.due_at, entry.id), entry.leased_until)
            and entry.key.startswith(selection.prefix)
        )
        first = nsmallest(selection.limit, found, key=attrgetter("due_at", "id"))
        return [ListedMessage(entry.id, entry.key, _stored(entry)) for entry in first]

    @at_once
    def reschedule(self, key: str, due_at: int, now: int) -> bool:  # noqa: ARG002 - the port's signature
        """Put a message elsewhere in due order."""
        entry = self._table.by_key.get(key)
        if entry is None or (entry.expires_at is not None and entry.expires_at <= due_at):
            return False
        entry.asked_at = due_at
        self._table.reschedule(entry, due_at)
        return True

    @at_once
    def drop(
        self,
        key: str,
        now: int,
        *,
        sender: str | None = None,  # noqa: ARG002 - no other process can reach this
    ) -> bool:
        """Remove by key."""
        entry = self._table.by_key.get(key)
        if entry is None:
            return False
        self._settling.drop(entry, now)
        self._refuse(key, DROPPED, KEEP, now)
        return True

    @at_once
    def drop_all(self, now: int) -> int:
        """Remove every live message, and every response."""
        self._table.responses.clear()
        return self._settling.drop_all(now)

    @at_once
    def counts(self, now: int) -> Counts:
        """Walk over all messages."""
        entries = self._table.by_key.values()
        free = [entry.due_at for entry in entries if entry.leased_until <= now]
        due = [due_at for due_at in free if due_at <= now]
        future = [due_at for due_at in free if due_at > now]
        return Counts(
            due=len(due),
            leased=len(entries) - len(free),
            future=len(future),
            buried=len(self._table.buried),
            oldest_due_at=min(due, default=None),
            next_due_at=min(future, default=None),
        )

    @at_once
    def forecast(self, now: int, buckets: Buckets) -> DueCounts:
        """Walk over all messages."""
        entries = self._table.by_key.values()
        ahead = Counter(
            (entry.due_at - buckets.begins_at) // buckets.length
            for entry in entries
            if now < entry.due_at < buckets.until
        )
        due = (entry for entry in entries if entry.due_at <= now and entry.leased_until <= now)
        return DueCounts(sum(1 for _ in due), ahead)

    @at_once
    def next_due(self, now: int) -> int | None:
        """Ask the timer."""
        return self._table.next_due(now)

    @at_once
    def earliest_due(self, now: int) -> int | None:
        """Ask the timer."""
        return self._table.earliest_due(now)

    @at_once
    def delete_old(self, limits: AgeLimits, limit: int) -> bool:  # noqa: ARG002 - the port's signature
        """Walk over everything; all of it may go at once, because nobody waits for a disk."""
        if limits.history_before is not None:
            self._settling.forget_before(limits.history_before)
        if limits.buried_before is not None:
            self.burials.forget_before(limits.buried_before)
        return False

    @at_once
    def settled(self, limit: int, key: str | None = None) -> list[SettledRow]:
        """Sort all rows of the history."""
        return self._settling.newest(limit, key)

    @at_once
    def notify(self, due_at: int) -> None:
        """Do nothing, because no other process can see this."""

    def _offer(self, record: Record, now: int) -> OfferOutcome:
        entry = self._table.by_key.get(record.key)
        if entry is None:
            self._table.add(record)
            return OfferOutcome.CREATED
        same = (
            entry.payload == record.payload
            and entry.asked_at == record.due_at
            and entry.expires_at == record.expires_at
        )
        if same or not record.replace:
            return OfferOutcome.IGNORED
        self._settling.replace(entry, now)
        self._table.reschedule(entry, record.due_at)  # first, so that no old lease outlives it
        entry.payload, entry.asked_at, entry.attempt = record.payload, record.due_at, 0
        entry.headers, entry.expires_at = record.headers, record.expires_at
        return OfferOutcome.UPDATED

    def _refuse(self, key: str, reason: str, keep: int, now: int) -> None:
        """Keep the reason why a message has no response."""
        refusal = StoredResponse(None, reason, now)
        self._table.responses.put(key, refusal, now + keep, now)

    def _held(self, leases: Sequence[Lease]) -> list[tuple[MemoryMessage, Lease]]:
        held: dict[int, tuple[MemoryMessage, Lease]] = {}
        for lease in leases:
            entry = self._table.by_key.get(lease.key)
            if entry is not None and (entry.id, entry.token) == (lease.id, lease.token):
                held[lease.id] = entry, lease
        return list(held.values())


def _stored(entry: MemoryMessage) -> StoredMessage:
    about = (entry.due_at, entry.leased_until, entry.attempt, entry.headers, entry.expires_at)
    return StoredMessage(entry.payload, entry.asked_at, *about)
