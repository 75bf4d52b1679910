"""The burials of one kind of message in Redis."""

from itertools import chain

from duequeue.port.burial_table import StoredBurial
from duequeue.port.listing import BurialId, BurialSelection, RevivedBurials
from duequeue.port.store import Steps
from duequeue.stores.redis.commands import MOST_AT_ONCE, MOST_BYTES, Caller, Word
from duequeue.stores.redis.cron_table import note_of_key
from duequeue.stores.redis.packing import burial as parsed


class RedisBurials:
    """Lists, revives and deletes burials; see `port.burial_table`."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def listed(self, selection: BurialSelection) -> Steps[list[StoredBurial]]:
        """Read the burials by time, a thousand in each script."""
        found: list[StoredBurial] = []
        after: BurialId | None = selection.after
        while after is not None and len(found) < selection.limit:
            left = selection._replace(after=after, limit=selection.limit - len(found))
            after, pairs = yield from self._page(left, brief=False)
            found += [parsed(number, text) for number, text in pairs]
        return found

    def last(self) -> Steps[BurialId | None]:
        """Read the last of the burials by time."""
        reply = yield self._caller.script("last_burial")
        return None if reply is None else BurialId(int(reply[0]), int(reply[1]))

    def revive(
        self,
        key: str,
        due_at: int,
        now: int,  # noqa: ARG002 - the port's signature
        burial: BurialId | None = None,
    ) -> Steps[bool]:
        """Offer a burial as a new message."""
        wanted: tuple[Word, ...] = burial or ("", "")
        words = (key, due_at, note_of_key(key), *wanted)
        return bool((yield self._caller.script("revive", words)))

    def revive_all(
        self,
        selection: BurialSelection,
        due_at: int,
        now: int,  # noqa: ARG002 - the port's signature
    ) -> Steps[RevivedBurials]:
        """Offer the newest burial of each key as a new message, however many were selected."""
        after, pairs = yield from self._page(selection, brief=True)
        left: list[tuple[Word, ...]] = [
            (number[1:], note_of_key(key.decode())) for number, key in pairs
        ]
        total = 0
        while left:
            words = [selection.reason, due_at, MOST_BYTES, *chain.from_iterable(left)]
            revived, done = yield self._caller.script("revive_all", words)
            total += revived
            left = left[done:]
        return RevivedBurials(total, after)

    def delete(self, burial: BurialId) -> Steps[bool]:
        """Delete by number, if the time is right too."""
        return bool((yield self._caller.script("delete_burial", burial)))

    def purge(self, before: int) -> Steps[int]:
        """Delete by time, a thousand in each script."""
        total, more = 0, True
        while more:
            purged, more = yield from self.delete_old(before, MOST_AT_ONCE)
            total += purged
        return total

    def delete_old(self, before: int, limit: int) -> Steps[tuple[int, bool]]:
        """Delete by time; return how many, and whether there may be more."""
        words = (before, limit, MOST_BYTES)
        purged, more = yield self._caller.script("purge_burials", words)
        return purged, bool(more)

    def _page(
        self, selection: BurialSelection, *, brief: bool
    ) -> Steps[tuple[BurialId | None, list[tuple[bytes, bytes]]]]:
        """Look at up to a thousand burials; return where to go on, and number and text of each."""
        limit, after, until, reason = selection
        if limit <= 0:
            return None, []
        words = (*after, *until, reason, min(limit, MOST_AT_ONCE), MOST_BYTES, int(brief))
        reply = yield self._caller.script("list_burials", words)
        at, number, *rest = reply
        parts = iter(rest)
        going_on = BurialId(int(at), int(number)) if at else None
        return going_on, list(zip(parts, parts, strict=True))
