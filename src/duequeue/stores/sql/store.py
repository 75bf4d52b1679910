"""Every operation of a store, written once for all SQL dialects."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter, itemgetter
from typing import NamedTuple

from duequeue.message import OfferOutcome
from duequeue.port.burial_table import StoredBurial
from duequeue.port.fencing import SAME_CLAIM
from duequeue.port.history_table import SettledRow
from duequeue.port.listing import Buckets, DueCounts, Position, Selection
from duequeue.port.store import (
    ANONYMOUS_SENDER,
    AgeLimits,
    Answer,
    Burial,
    Claimed,
    Counts,
    Expiry,
    Extended,
    Lease,
    ListedMessage,
    Record,
    Release,
    ResponseLook,
    Steps,
    StoredMessage,
)
from duequeue.stores.mailbox import Note
from duequeue.stores.sql.burials import SqlBurials
from duequeue.stores.sql.commands import BEGIN, Execute, Query, QueryEach, Row
from duequeue.stores.sql.cron_table import SqlCronTable
from duequeue.stores.sql.listing import list_messages
from duequeue.stores.sql.settling import KEY, LEASE, Settling, SqlResponses, pairs
from duequeue.stores.sql.watermark import BEGINNING, Claim, Watermark

OVERDUE = -1  # as the number of a bucket

_ID = itemgetter(0)
_DUE_AT = attrgetter("due_at")
_KEY_AND_CREATED = itemgetter(0, 1)


class Kind(NamedTuple):
    """A queue name with a payload type, and the number that identifies it in the tables."""

    id: int
    name: str


class SqlStore:
    """The messages of one kind in an SQL database; see `port.store.Store`."""

    def __init__(
        self,
        kind: Kind,
        settling: Settling,
        sweep_interval: int,
        shared_watermark: Watermark,
        own_watermark: Watermark | None = None,
        responses: SqlResponses | None = None,
    ) -> None:
        self._kind_of_message = kind
        self._kind = {"kind_id": kind.id}
        self._settling = settling
        self.cron = SqlCronTable(kind.id, settling)
        self.burials = SqlBurials(kind.id, self.cron)
        self._responses = responses or SqlResponses(
            kind.id, kind.name, by_function=settling.by_function
        )
        self._sweep_interval = sweep_interval
        self._shared_watermark = shared_watermark
        self._watermark = own_watermark or shared_watermark

    def offer(
        self,
        records: Sequence[Record],
        now: int,
        *,
        sender: str | None = None,
        hurried: bool = False,
    ) -> Steps[list[OfferOutcome]]:
        """Offer the first record of each key, then the second of each, and so on.

        The first statement locks or creates the rows of all keys, in one order. So no two batches
        wait for each other, and the other statements meet only rows that are already locked.
        """
        if self._settling.keeps_history:
            yield from self._settling.prepare(now)
        note = None
        if sender is not None:
            note = str(Note(sender, min(records, key=_DUE_AT).due_at, self._kind_of_message.name))
        runs = [records] if len(records) == 1 else _runs(records)
        found = yield from self._settling.offer(runs, now, note, hurried=hurried)
        replies: list[dict[str, bool]] = [dict(map(_KEY_AND_CREATED, rows)) for rows in found]
        if len(runs) == 1:
            return [_outcome(replies[0].get(record.key)) for record in records]
        reply_to = defaultdict[str, Iterator[dict[str, bool]]](lambda: iter(replies))
        return [_outcome(next(reply_to[record.key]).get(record.key)) for record in records]

    def claim(self, limit: int, now: int, until: int, token: int) -> Steps[list[Claimed]]:
        """Claim from the watermark on; if nothing is there, claim from the beginning."""
        if self._settling.keeps_history:
            yield from self._settling.prepare(now)
        start = self._watermark.start(now, self._sweep_interval)
        while True:
            rows: list[Row] = yield Query(
                "claim_messages",
                {
                    **self._kind,
                    "now": now,
                    "until": until,
                    "token": token,
                    "limit": limit,
                    "after_due": start.position.due_at,
                    "after_id": start.position.id,
                },
            )
            if rows or start.position == BEGINNING:
                break
            start = self._watermark.sweep(now)
        rows.sort()  # by due time and id, because RETURNING promises no order
        if rows:
            claim = Claim(token // SAME_CLAIM, len(rows), until)
            self._watermark.claimed(start, Position(*rows[-1][:2]), claim)
            if old := [(row[2], row[9]) for row in rows if row[9] is not None]:
                yield from self._responses.forget_old(old)
        return [
            Claimed._make((Lease(row[1], row[8], now, row[2]), *row[2:7], row[0], row[7]))
            for row in rows
        ]

    def claim_expired(self, limit: int, now: int, until: int, token: int) -> Steps[list[Expiry]]:
        """Claim from the beginning; a lease that is not used is found by the next sweep."""
        lease = {"now": now, "until": until, "token": token, "limit": limit}
        rows: list[Row] = yield Query("claim_expired", {**self._kind, **lease})
        if old := [(row[1], row[3]) for row in rows if row[3] is not None]:
            yield from self._responses.forget_old(old)
        return [Expiry(Lease(row[0], token, now, row[1]), row[2]) for row in rows]

    def expire(self, expiries: Sequence[Expiry], now: int) -> Steps[set[int]]:
        """Delete by id and token."""
        rows = yield from self._settling.expire(expiries, now)
        return self._settled(rows, [expiry.lease for expiry in expiries])

    def ack(self, leases: Sequence[Lease], now: int) -> Steps[set[int]]:
        """Delete by id and token."""
        return self._settled((yield from self._settling.ack(leases, now)), leases)

    def answer(
        self, answers: Sequence[Answer], now: int, *, sender: str | None = None
    ) -> Steps[set[int]]:
        """Store the responses, and delete by id and token."""
        yield from self._responses.make_room(len(answers), now)
        leases = [answer.lease for answer in answers]
        notes = self._responses.notes(map(KEY, leases), sender)
        return self._settled((yield from self._settling.answer(answers, now, notes)), leases)

    def response(self, key: str, now: int) -> Steps[ResponseLook]:
        """Look up the message and the response of a key."""
        return self._responses.find(key, now)

    def forget_response(self, key: str, now: int) -> Steps[bool]:
        """Delete by key."""
        return self._responses.forget(key, now)

    def extend(self, leases: Sequence[Lease], until: int) -> Steps[Extended]:
        """Set the new end of the leases, then see which of the others are only locked."""
        each = pairs(leases)
        rows: list[Row] = yield QueryEach("extend_leases", {"until": until}, LEASE, each)
        won = set(map(_ID, rows))
        self._watermark.extended(
            (lease.token // SAME_CLAIM for lease in leases if lease.id in won), until
        )
        left = [pair for pair in each if pair[0] not in won]
        rows = (yield QueryEach("find_held", {}, LEASE, left)) if left else []
        return Extended(won, busy=set(map(_ID, rows)))

    def release(self, releases: Sequence[Release]) -> Steps[set[int]]:
        """Clear the leases and set the new due times."""
        leases = [release.lease for release in releases]
        due = {release.lease: release.due_at for release in reversed(releases)}
        each = [(*lease[:2], due[lease]) for lease in sorted(due, key=KEY)]
        rows = yield QueryEach("release_messages", {}, (*LEASE, "due_at"), each)
        return self._settled(rows, leases)

    def give_back(self, leases: Sequence[Lease]) -> Steps[set[int]]:
        """Clear the leases and take the attempts back."""
        rows = yield QueryEach("give_back_messages", {}, LEASE, pairs(leases))
        return self._settled(rows, leases)

    def bury(
        self, burials: Sequence[Burial], now: int, *, sender: str | None = None
    ) -> Steps[set[int]]:
        """Copy the messages to the table of buried ones, then delete them."""
        yield from self._responses.make_room(len(burials), now)
        leases = [burial.lease for burial in burials]
        notes = self._responses.notes(map(KEY, leases), sender)
        return self._settled((yield from self._settling.bury(burials, now, notes)), leases)

    def read(self, key: str) -> Steps[StoredMessage | StoredBurial | None]:
        """Look among the live and the buried messages, and prefer a live one."""
        rows: list[Row] = yield Query("find_message", {**self._kind, "key": key})
        found: StoredMessage | StoredBurial | None = None
        for payload, asked_at, attempts, headers, due_at, until, expires_at, *burial in rows:
            reason, buried_at, number = burial
            if buried_at is None:
                state = (due_at, until, attempts, headers, expires_at)
                return StoredMessage(payload, asked_at, *state)
            about = (asked_at, attempts, reason, buried_at, headers, number)
            found = StoredBurial(key, payload, *about)
        return found

    def listed(self, selection: Selection, now: int) -> Steps[list[ListedMessage]]:
        """Read the index of due times, or that of keys."""
        return list_messages(self._kind_of_message.id, selection, now)

    def reschedule(self, key: str, due_at: int, now: int) -> Steps[bool]:
        """Update by key."""
        one = {**self._kind, "key": key, "due_at": due_at, "now": now}
        changed: int = yield Execute("reschedule_message", one)
        return changed > 0

    def drop(self, key: str, now: int, *, sender: str | None = None) -> Steps[bool]:
        """Delete by key."""
        yield from self._responses.make_room(1, now)
        notes = self._responses.notes([key], sender)
        return (yield from self._settling.drop(key, now, notes)) > 0

    def drop_all(self, now: int) -> Steps[int]:
        """Delete by kind, the responses last, because those to earlier messages must go."""
        if self._settling.keeps_history:
            yield from self._settling.prepare(now)
        yield BEGIN
        dropped = yield from self._settling.drop_all(now)
        yield from self._responses.forget_all()
        return dropped

    def counts(self, now: int) -> Steps[Counts]:
        """Count in one scan."""
        rows: list[Row] = yield Query("count_messages", {**self._kind, "now": now})
        return Counts(*rows[0])

    def forecast(self, now: int, buckets: Buckets) -> Steps[DueCounts]:
        """Count in the index of due times."""
        rows: list[Row] = yield Query("count_due", {**self._kind, "now": now, **buckets._asdict()})
        counts: dict[int, int] = dict(rows)
        return DueCounts(counts.pop(OVERDUE), counts)

    def next_due(self, now: int) -> Steps[int | None]:
        """Look up the first index entry after now."""
        rows: list[Row] = yield Query("next_due", {**self._kind, "now": now})
        return rows[0][0] if rows else None

    def earliest_due(self, now: int) -> Steps[int | None]:
        """Look up the first index entry that is not leased."""
        rows: list[Row] = yield Query("earliest_due", {**self._kind, "now": now})
        return rows[0][0] if rows else None

    def delete_old(self, limits: AgeLimits, limit: int) -> Steps[bool]:
        """Remove whole days where a day is a table, then delete rows by time."""
        deleted = [0]
        if limits.history_before is not None:
            old = {**self._kind, "before": limits.history_before}
            yield Query("drop_history_days", old)
            deleted.append((yield Execute("delete_old_history", {**old, "limit": limit})))
        if limits.buried_before is not None:
            old = {**self._kind, "before": limits.buried_before, "limit": limit}
            deleted.append((yield Execute("delete_old_burials", old)))
        return max(deleted) >= limit

    def settled(self, limit: int, key: str | None = None) -> Steps[list[SettledRow]]:
        """Read the index of the history backwards, until there are enough rows."""
        wanted = {**self._kind, "key": key, "limit": limit}
        rows: list[Row] = yield Query("list_history", wanted)
        kind = self._kind_of_message.name
        return [SettledRow(row[0], kind, *row[1:]) for row in rows]

    def prepare_history(self, now: int) -> Steps[None]:
        """Make room for the rows of today and tomorrow."""
        return self._settling.prepare(now)

    def announce(self, due_at: int) -> None:
        """Lower the watermark."""
        self._shared_watermark.lower(due_at)

    def notify(self, due_at: int) -> Steps[None]:
        """Notify every process, also this one, which cannot know when the caller commits."""
        note = Note(ANONYMOUS_SENDER, due_at, self._kind_of_message.name)
        yield Query("notify_waiters", {"note": str(note)})

    def borrowed(self) -> "SqlStore":
        """Return a store that claims from the beginning, because claims may be rolled back."""
        return SqlStore(
            self._kind_of_message,
            self._settling.borrowed(),
            self._sweep_interval,
            self._shared_watermark,
            Watermark(),
            self._responses,
        )

    def _settled(self, rows: Iterable[Row], leases: Sequence[Lease]) -> set[int]:
        won = set(map(_ID, rows))
        # A caller may give the same delivery twice, but it settles only once.
        self._watermark.settled(
            lease.token // SAME_CLAIM for lease in set(leases) if lease.id in won
        )
        return won


def _runs(records: Sequence[Record]) -> list[list[Record]]:
    """Cut records into runs of distinct keys; each record goes into the first run it can."""
    runs: list[list[Record]] = []
    met: dict[str, int] = {}
    for record in records:
        turn = met.get(record.key, 0)
        met[record.key] = turn + 1
        if turn == len(runs):
            runs.append([])
        runs[turn].append(record)
    return runs


def _outcome(created: object) -> OfferOutcome:
    if created is None:
        return OfferOutcome.IGNORED
    return OfferOutcome.CREATED if created else OfferOutcome.UPDATED
