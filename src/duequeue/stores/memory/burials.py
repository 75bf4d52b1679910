"""The burials of one kind of message in this process."""

from collections.abc import Callable

from duequeue.drive.steps import at_once
from duequeue.message import OfferOutcome
from duequeue.port.burial_table import StoredBurial
from duequeue.port.listing import BurialId, BurialSelection, RevivedBurials
from duequeue.port.store import Record, Steps
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
        """Walk over the ids."""
        return max(self._table.buried, default=None)

    def newest(self, key: str, burial: BurialId | None = None) -> StoredBurial | None:
        """Return the burial with this id, or else the newest one of a key."""
        if burial is not None:
            found = self._table.buried.get(burial)
            return found if found is not None and found.key == key else None
        newest_first = reversed(self._table.buried.values())
        return next((each for each in newest_first if each.key == key), None)

    def revive(
        self, key: str, due_at: int, now: int, burial: BurialId | None = None
    ) -> Steps[bool]:
        """Offer a burial as a new message."""
        found = self.newest(key, burial)
        return found is not None and (yield from self._revive(found, due_at, now))

    def revive_all(
        self, selection: BurialSelection, due_at: int, now: int
    ) -> Steps[RevivedBurials]:
        """Offer burials as new messages."""
        buried = self._table.buried.values()
        newest = {each.key: each for each in buried if selection.reason in each.reason}
        selected = [each for each in self._selected(selection) if newest[each.key] is each]
        revived = 0
        for each in selected[: selection.limit]:
            revived += yield from self._revive(each, due_at, now)
        is_full = 0 < selection.limit <= len(selected)
        return RevivedBurials(revived, _id_of(selected[selection.limit - 1]) if is_full else None)

    @at_once
    def delete(self, burial: BurialId) -> bool:
        """Remove by id."""
        return self._table.buried.pop(burial, None) is not None

    @at_once
    def purge(self, before: int) -> int:
        """Walk over the buried messages."""
        return self.forget_before(before)

    def forget_before(self, before: int) -> int:
        """Delete old burials, and count them."""
        old = [burial for burial in self._table.buried if burial.buried_at < before]
        for burial in old:
            del self._table.buried[burial]
        return len(old)

    def _selected(self, selection: BurialSelection) -> list[StoredBurial]:
        found = [
            each
            for burial, each in self._table.buried.items()
            if selection.after < burial <= selection.until and selection.reason in each.reason
        ]
        return sorted(found, key=_id_of)

    def _revive(self, found: StoredBurial, due_at: int, now: int) -> Steps[bool]:
        record = Record(found.key, found.payload, due_at, found.headers, replace=False)
        if self._offer(record, now) is not OfferOutcome.CREATED:
            return False
        del self._table.buried[_id_of(found)]
        yield from self._cron.release(found.key)
        return True


def _id_of(burial: StoredBurial) -> BurialId:
    return BurialId(burial.buried_at, burial.number)
