"""The burials of one kind of message in an SQL database."""

from collections.abc import Sequence

from duequeue.port.burial_table import StoredBurial
from duequeue.port.listing import BurialId, BurialSelection, RevivedBurials
from duequeue.port.store import Steps
from duequeue.stores.sql.commands import BEGIN, Execute, Query, QueryEach, Row
from duequeue.stores.sql.cron_table import SqlCronTable


class SqlBurials:
    """Lists, revives and deletes burials; see `port.burial_table`."""

    def __init__(self, kind_id: int, cron: SqlCronTable) -> None:
        self._kind = {"kind_id": kind_id}
        self._cron = cron

    def listed(self, selection: BurialSelection) -> Steps[list[StoredBurial]]:
        """Read the index by time."""
        rows: list[Row] = yield Query("list_buried", {**self._kind, **_bounds(selection)})
        return [StoredBurial(*row) for row in rows]

    def last(self) -> Steps[BurialId | None]:
        """Read the end of the index by time."""
        rows: list[Row] = yield Query("last_burial", self._kind)
        return BurialId(*rows[0]) if rows else None

    def revive(
        self, key: str, due_at: int, now: int, burial: BurialId | None = None
    ) -> Steps[bool]:
        """Lock the burial, so that it is revived only once."""
        yield BEGIN
        buried_at, number = burial or (None, None)
        wanted = {**self._kind, "key": key, "id": number, "buried_at": buried_at}
        rows: list[Row] = yield Query("lock_buried", wanted)
        return (yield from self._revive_locked(rows, due_at, now)) > 0

    def revive_all(
        self, selection: BurialSelection, due_at: int, now: int
    ) -> Steps[RevivedBurials]:
        """Lock the burials; those that another transaction has locked are left to it."""
        yield BEGIN
        rows: list[Row] = yield Query("lock_burials", {**self._kind, **_bounds(selection)})
        revived = yield from self._revive_locked(rows, due_at, now)
        last = BurialId(*rows[-1][::-1]) if rows and len(rows) == selection.limit else None
        return RevivedBurials(revived, last)

    def delete(self, burial: BurialId) -> Steps[bool]:
        """Delete by id."""
        one = {**self._kind, "buried_at": burial.buried_at, "id": burial.number}
        deleted: int = yield Execute("delete_buried", one)
        return deleted > 0

    def purge(self, before: int) -> Steps[int]:
        """Delete by time."""
        purged: int = yield Execute("purge_buried", {**self._kind, "before": before})
        return purged

    def _revive_locked(self, rows: Sequence[Row], due_at: int, now: int) -> Steps[int]:
        """Insert copies of burials as new messages, and delete those that could be inserted."""
        if not rows:
            return 0
        each = [(row[0],) for row in rows]
        parameters = {"due_at": due_at, "now": now}
        revived: list[Row] = yield QueryEach("revive_burials", parameters, ("id",), each)
        if revived:
            gone = [(number,) for number, _ in revived]
            yield QueryEach("forget_burials", {}, ("id",), gone)
        for _, key in revived:
            yield from self._cron.release(key)
        return len(revived)


def _bounds(selection: BurialSelection) -> dict[str, object]:
    return {
        "after_at": selection.after.buried_at,
        "after_id": selection.after.number,
        "until_at": selection.until.buried_at,
        "until_id": selection.until.number,
        "reason": selection.reason,
        "limit": selection.limit,
    }
