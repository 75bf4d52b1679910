"""The messages of one kind in Redis; see `port.store.Store`.

Every operation is one script. An operation on many messages is several, one after the other,
because nobody else is served while a script runs.
"""

from asyncio import CancelledError
from collections.abc import Sequence
from itertools import chain
from operator import attrgetter, itemgetter

from duequeue.message import OfferOutcome
from duequeue.port.burial_table import StoredBurial
from duequeue.port.fencing import losses_of
from duequeue.port.history_table import SettledRow
from duequeue.port.listing import Buckets, DueCounts, Selection
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
    Steps,
    StoredMessage,
)
from duequeue.stores.redis.burials import RedisBurials
from duequeue.stores.redis.commands import (
    MOST_AT_ONCE,
    MOST_BYTES,
    Caller,
    Script,
    Word,
    cut,
    cut_by_size,
    record_words,
)
from duequeue.stores.redis.connections.alerts import RedisMailbox
from duequeue.stores.redis.cron_table import RedisCronTable
from duequeue.stores.redis.history_table import RedisHistory
from duequeue.stores.redis.listing import listed
from duequeue.stores.redis.packing import NOTHING, burial, claimed, response, stored
from duequeue.stores.shards import Undo

OUTCOMES = {
    ord("c"): OfferOutcome.CREATED,
    ord("u"): OfferOutcome.UPDATED,
    ord("i"): OfferOutcome.IGNORED,
}
WON = ord("1")

# These are written in C, and every call needs them.
_due_at = attrgetter("due_at")
_words_of = itemgetter(1)


class RedisStore(NoUpkeep):
    """Every operation of a store, as scripts."""

    def __init__(self, caller: Caller, kind_number: int, mailbox: RedisMailbox) -> None:
        self._caller = caller
        self._kind_number = kind_number
        self._mailbox = mailbox
        self.cron = RedisCronTable(caller)
        self.burials = RedisBurials(caller)
        self._history = RedisHistory(caller)

    def offer(
        self,
        records: Sequence[Record],
        now: int,
        *,
        sender: str | None = None,
        hurried: bool = False,  # noqa: ARG002 - there are no locks
    ) -> Steps[list[OfferOutcome]]:
        """Store all records in one script, which also wakes a process that waits.

        If they replace more than 16 MiB, it stores the first ones, and more scripts store the rest.
        """
        found: list[OfferOutcome] = []
        while len(found) < len(records):
            left = records[len(found) :]
            due_at = min(map(_due_at, left))
            words: list[Word] = [now, sender or "", self._caller.kind, due_at, MOST_BYTES]
            for record in left:
                words += record_words(record)
            outcomes: bytes = yield self._caller.script("offer", words, now)
            found += map(OUTCOMES.__getitem__, outcomes)
        return found

    def claim(
        self, limit: int, now: int, until: int, token: int, *, leaves_others: bool = False
    ) -> Steps[list[Claimed]]:
        """Take from the front of the messages that wait.

        If it leaves others that are due in another shard, another process is woken for them.
        """
        found: list[Claimed] = []
        taken_out = False
        token -= losses_of(token)  # an older client draws tokens that end in any digit
        lease = Lease(0, token, now, "")
        channel = self._mailbox.channel_for(self._caller.kind)
        was_owed = channel != "" and self._mailbox.waits.look(self._caller.kind)
        while len(found) < limit:
            most = min(limit - len(found), MOST_AT_ONCE)
            kind, others = self._caller.kind, int(leaves_others)
            words = (most, now, until, token, MOST_BYTES, channel, kind, others)
            try:
                reply = yield from self._caller.until_done("claim", words)
            except BaseException as error:
                if was_owed:
                    self._mailbox.waits.wake(self._caller.kind)
                if isinstance(error, CancelledError):
                    yield Undo([self.undo_claim(until, token)])
                raise
            if channel and reply:
                taken_out |= bool(reply.pop())
            parts = iter(reply)
            found += [
                claimed(member, content, due, counts, lease)
                for member, content, due, counts in zip(parts, parts, parts, parts, strict=True)
            ]
            if len(reply) < 4 * most:
                break
        if taken_out:
            self._mailbox.enter_again(self._caller.kind)
        return found

    def undo_claim(self, until: int, token: int) -> Script:
        """Return the script that gives back the messages of a claim whose caller was cancelled.

        Otherwise, they would wait for the lease to end.
        """
        kind = self._caller.kind
        if self._mailbox.channel_for(kind):
            self._mailbox.enter_again(kind)
        return self._caller.script("undo_claim", (token, until, kind))

    def due_times(self, limit: int, now: int) -> Steps[list[int]]:
        """Return when the first messages that are due now were due."""
        words = (min(limit, MOST_AT_ONCE), now)
        return [int(due) for due in (yield from self._caller.until_done("due_times", words))]

    def claim_expired(self, limit: int, now: int, until: int, token: int) -> Steps[list[Expiry]]:
        """Look at the messages that are due first."""
        words = (min(limit, MOST_AT_ONCE), now, until, token, MOST_BYTES)
        reply = yield from self._caller.until_done("claim_expired", words)
        parts = iter(reply)
        return [
            Expiry(Lease(int(number), token, now, key.decode()), attempts)
            for number, key, attempts in zip(parts, parts, parts, strict=True)
        ]

    def expire(self, expiries: Sequence[Expiry], now: int) -> Steps[set[int]]:
        """Remove the messages that are still held and have expired."""
        each = [
            (lease, (lease.id, lease.token, NOTHING, NOTHING, attempts))
            for lease, attempts in expiries
        ]
        return (yield from self._settle("remove", (now, "expired", MOST_BYTES), each, now))

    def ack(self, leases: Sequence[Lease], now: int) -> Steps[set[int]]:
        """Remove the messages that are still held."""
        each = [
            (lease, (lease.id, lease.token, lease.delivered_at, _or_nothing(lease.handler_ms), ""))
            for lease in leases
        ]
        return (yield from self._settle("remove", (now, "acked", MOST_BYTES), each, now))

    def answer(
        self, answers: Sequence[Answer], now: int, *, sender: str | None = None
    ) -> Steps[set[int]]:
        """Remove the messages that are still held, and store the responses."""
        first = (now, *self._about(sender), MOST_BYTES)
        won: set[int] = set()
        for part in cut_by_size(answers, [len(each.payload) for each in answers]):
            each: list[tuple[Lease, Sequence[Word]]] = []
            for lease, payload, expires_at in part:
                known = (lease.delivered_at, _or_nothing(lease.handler_ms))
                each.append((lease, (lease.id, lease.token, *known, payload, expires_at)))
            won |= yield from self._settle("answer", first, each, now)
        return won

    def response(self, key: str, now: int) -> Steps[ResponseLook]:
        """Look up the message and the response; if there is none, wait for wake-ups."""
        channel = self._mailbox.channel_for(self._caller.kind, for_answers=True)
        found = yield self._caller.script("response", (key, now, channel))
        if isinstance(found, int):
            return ResponseLook(is_pending=found == 1)
        return ResponseLook(is_pending=False, response=response(found))

    def forget_response(self, key: str, now: int) -> Steps[bool]:
        """Remove by key."""
        return bool((yield self._caller.script("forget_response", (key, now))))

    def extend(self, leases: Sequence[Lease], until: int) -> Steps[Extended]:
        """Move the end of the leases that are still held."""
        won = yield from self._settle("extend", (until,), [(each, each[:2]) for each in leases])
        return Extended(won, busy=set())

    def release(self, releases: Sequence[Release]) -> Steps[set[int]]:
        """Put the messages that are still held back into due order."""
        each = [(lease, (lease.id, lease.token, due_at)) for lease, due_at in releases]
        return (yield from self._settle("release", (), each))

    def give_back(self, leases: Sequence[Lease]) -> Steps[set[int]]:
        """Put the messages that are still held back where they were."""
        return (yield from self._settle("give_back", (), [(each, each[:2]) for each in leases]))

    def bury(
        self, burials: Sequence[Burial], now: int, *, sender: str | None = None
    ) -> Steps[set[int]]:
        """Move the messages that are still held to the buried ones."""
        each: list[tuple[Lease, Sequence[Word]]] = []
        for lease, attempts, reason, keep in burials:
            known = (lease.delivered_at, _or_nothing(lease.handler_ms), now + keep)
            each.append((lease, (lease.id, lease.token, attempts, reason, *known)))
        first = (now, self._kind_number, *self._about(sender), MOST_BYTES)
        return (yield from self._settle("bury", first, each, now))

    def read(self, key: str) -> Steps[StoredMessage | StoredBurial | None]:
        """Look among the live messages, then among the buried ones."""
        reply = yield self._caller.script("read", (key,))
        if reply is None:
            return None
        content, *about = reply
        return stored(content, *about) if len(about) > 1 else burial(content, *about)

    def listed(self, selection: Selection, now: int) -> Steps[list[ListedMessage]]:
        """Merge the messages that wait with those that are leased."""
        return listed(self._caller, selection, now)

    def reschedule(self, key: str, due_at: int, now: int) -> Steps[bool]:  # noqa: ARG002 - the port's signature
        """Put a message elsewhere in due order."""
        return bool((yield self._caller.script("reschedule", (key, due_at))))

    def drop(self, key: str, now: int, *, sender: str | None = None) -> Steps[bool]:
        """Remove by key."""
        words = (now, key, *self._about(sender), now + KEEP, DROPPED)
        return bool((yield self._caller.script("drop", words, now)))

    def drop_all(self, now: int) -> Steps[int]:
        """Remove every live message; with a history, a thousand in each script."""
        total, more = 0, True
        while more:
            dropped, more = yield self._caller.script("drop_all", (now, MOST_BYTES), now)
            total += dropped
        return total

    def counts(self, now: int) -> Steps[Counts]:
        """Ask for the sizes of ranges, without walking over the messages."""
        reply = yield from self._caller.until_done("counts", (now,))
        due, leased, future, buried, oldest, nearest = reply
        return Counts(due, leased, future, buried, _instant(oldest), _instant(nearest))

    def forecast(self, now: int, buckets: Buckets) -> Steps[DueCounts]:
        """Ask for the size of each range that is not empty."""
        overdue, *numbers = yield from self._caller.until_done("forecast", (now, *buckets))
        return DueCounts(overdue, dict(zip(numbers[::2], numbers[1::2], strict=True)))

    def next_due(self, now: int) -> Steps[int | None]:
        """Look behind the messages that are due."""
        return _instant((yield self._caller.script("next_due", (now,))))

    def earliest_due(self, now: int) -> Steps[int | None]:
        """Look at the front of the messages that wait."""
        channel = self._mailbox.channel_for(self._caller.kind)
        was_owed = channel != "" and self._mailbox.waits.look(self._caller.kind)
        try:
            return _instant((yield from self._caller.until_done("earliest_due", (now, channel))))
        except BaseException:
            if was_owed:
                self._mailbox.waits.wake(self._caller.kind)
            raise

    def delete_old(self, limits: AgeLimits, limit: int) -> Steps[bool]:
        """Delete by time."""
        more = False
        if limits.history_before is not None:
            more = yield from self._history.delete_old(limits.history_before, limit)
        if limits.buried_before is not None:
            _, any_left = yield from self.burials.delete_old(limits.buried_before, limit)
            more |= any_left
        return more

    def settled(self, limit: int, key: str | None = None) -> Steps[list[SettledRow]]:
        """Read the days of the history from the newest on."""
        return self._history.newest(limit, key)

    def notify(self, due_at: int) -> Steps[None]:
        """Wake one process that waits."""
        yield self._caller.script("wake", (self._caller.kind, due_at, 0))

    def _about(self, sender: str | None) -> tuple[Word, Word]:
        """Return what a script needs to wake those who wait for responses."""
        return sender or "", self._caller.kind

    def _settle(
        self,
        name: str,
        first: Sequence[Word],
        each: Sequence[tuple[Lease, Sequence[Word]]],
        now: int | None = None,
    ) -> Steps[set[int]]:
        """Run a script on leases, and return the ids of those that were held."""
        won: set[int] = set()
        for part in cut(each):
            left = part
            while left:
                words = (*first, *chain.from_iterable(map(_words_of, left)))
                flags: bytes = yield self._caller.script(name, words, now)
                leases = zip(left, flags, strict=False)  # the rest did not fit into one script
                won.update([lease.id for (lease, _), flag in leases if flag == WON])
                left = left[len(flags) :]
        return won


def _or_nothing(number: int | None) -> Word:
    return NOTHING if number is None else number


def _instant(text: bytes) -> int | None:
    return int(text) if text else None
