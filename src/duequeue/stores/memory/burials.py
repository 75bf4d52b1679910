"""The burials of one kind of message in this process."""

from collections.abc import Callable

from duequeue.drive.steps import at_once
from duequeue.message import OfferOutcome
from duequeue.port.listing import BurialId, BurialSelection, RevivedBurials
from duequeue.port.store import Record, Steps, StoredBurial
from duequeue.stores.memory.cron_table import MemoryCronTable
from duequeue.stores.memory.table import MemoryTable


class MemoryBurials:
    """Lists, revives and deletes burials. The caller holds the lock."""

    def __init__(
        self,
        table: MemoryTable,
        cron: MemoryCronTable,
        offer: Callable[[Record, int], OfferOutcome],
    ) -> None:
        self._table = table
        self._cron = cron
        self._offer = offer

    @at_once
    def listed(self, selection: BurialSelection) -> list[StoredBurial]:
        """Sort the buried messages."""
        return self._selected(selection)[: selection.limit]

    @at_once
    def last(self) -> BurialId | None:
        """Walk over the buried messages."""
        return max(map(_id_of, self._table.buried), default=None)

    def newest(self, key: str, burial: BurialId | None = None) -> StoredBurial | None:
        """Return the burial with this id, or else the newest one of a key."""
        found = (each for each in reversed(self._table.buried) if each.key == key)
        return next((each for each in found if burial in {None, _id_of(each)}), None)

    def revive(self, key: str, due_at: int, now: int, burial: BurialId | None) -> Steps[bool]:
        """Offer a burial as a new message."""
        found = self.newest(key, burial)
        return found is not None and (yield from self._revive(found, due_at, now))

    def revive_all(
        self, selection: BurialSelection, due_at: int, now: int
    ) -> Steps[RevivedBurials]:
        """Offer burials as new messages."""
        newest = {each.key: each for each in self._table.buried if selection.reason in each.reason}
        selected = [each for each in self._selected(selection) if newest[each.key] is each]
        revived = 0
        for each in selected[: selection.limit]:
            revived += yield from self._revive(each, due_at, now)
        is_full = len(selected) >= selection.limit
        return RevivedBurials(revived, _id_of(selected[selection.limit - 1]) if is_full else None)

    @at_once
    def delete(self, burial: BurialId) -> bool:
        """Walk over the buried messages."""
        return self._keep(lambda each: _id_of(each) != burial) > 0

    @at_once
    def purge(self, before: int) -> int:
        """Walk over the buried messages."""
        return self._keep(lambda each: each.buried_at >= before)

    def forget_before(self, before: int) -> None:
        """Delete old burials, as a part of another operation."""
        self._keep(lambda each: each.buried_at >= before)

    def _selected(self, selection: BurialSelection) -> list[StoredBurial]:
        found = [
            each
            for each in self._table.buried
            if selection.after < _id_of(each) <= selection.until and selection.reason in each.reason
        ]
        return sorted(found, key=_id_of)

    def _revive(self, found: StoredBurial, due_at: int, now: int) -> Steps[bool]:
        record = Record(found.key, found.payload, due_at, found.headers, replace=False)
        if self._offer(record, now) is not OfferOutcome.CREATED:
            return False
        self._keep(lambda each: each is not found)
        yield from self._cron.release(found.key)
        return True

    def _keep(self, wanted: Callable[[StoredBurial], bool]) -> int:
        """Delete all other burials, and count them."""
        buried = self._table.buried
        kept = [each for each in buried if wanted(each)]
        deleted = len(buried) - len(kept)
        buried[:] = kept
        return deleted


def _id_of(burial: StoredBurial) -> BurialId:
    return BurialId(burial.buried_at, burial.number)
