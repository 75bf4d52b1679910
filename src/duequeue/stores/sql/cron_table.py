"""The crons of the SQL stores; see `port.cron_table.CronTable`.

An operation that changes ticks locks the row of its prefix first, until the transaction ends. So
each sees what the one before has done, and a process that dies in between has done nothing.
"""

from collections.abc import Sequence

from duequeue.instants import to_millis
from duequeue.port.cron_rules import Holding, UndeliveredTick, decide
from duequeue.port.cron_table import (
    REMEMBERED,
    CronListing,
    CronLook,
    CronRow,
    CronSteps,
    Installation,
    Installed,
)
from duequeue.port.store import Record
from duequeue.schedules.tick import find_tick
from duequeue.stores.sql.commands import BEGIN, Execute, Parameters, Query, QueryEach, Row
from duequeue.stores.sql.settling import Settling

OFFERED_AT_ONCE = 1000
FORGET_AT_ONCE = 200


class SqlCronTable:
    """The crons of one kind of message in an SQL database."""

    def __init__(self, kind_id: int, settling: Settling) -> None:
        self._kind = {"kind_id": kind_id}
        self._settling = settling

    def look(self, prefix: str, config_hash: str, since: int) -> CronSteps[CronLook]:
        """Read the row, joined to its ticks."""
        of = {**self._of(prefix), "config_hash": config_hash, "since": since}
        rows: list[Row] = yield Query("look_at_cron", of)
        found = _cron_row(rows[0]) if rows else CronRow()
        return CronLook(found, frozenset([row[6] for row in rows if row[6] is not None]))

    def install(self, installation: Installation, now: int) -> CronSteps[Installed]:
        """Lock, read, decide, and write."""
        of = self._of(installation.prefix)
        row = yield from self._lock(of, now)
        holding = Holding(row)
        has_past = row.generation > 0  # a prefix that was never installed has no ticks
        if has_past:
            holding = yield from self._held_for(installation, of, row)
        decision = decide(installation, holding)
        if decision.removed:
            yield from self._remove(decision.removed, of, now)
        due_at = yield from self._offer(decision.offered, now)
        if decision.noted:
            notes = [(installation.config_hash, tick.at, tick.key) for tick in decision.noted]
            yield QueryEach("remember_ticks", of, ("config_hash", "tick_at", "key"), notes)
        if decision.noted and has_past:
            yield from self._forget({**of, "config_hash": installation.config_hash}, now)
        if decision.row is not None:
            yield _save(of, decision.row)
        return Installed(decision.standing, len(decision.noted), due_at)

    def uninstall(self, prefix: str, config_hash: str, now: int) -> CronSteps[int]:
        """Remove the ticks under the lock."""
        of = self._of(prefix)
        row = yield from self._lock_if_there(of, now)
        if row is None:
            return 0
        ticks: list[Row] = yield Query("hold_undelivered_ticks", of)
        gone = [UndeliveredTick(*tick) for tick in ticks if tick[0] == config_hash]
        if gone:
            yield from self._remove(gone, of, now)
        if row.installed and row.config_hash == config_hash:
            yield _save(of, row._replace(installed=False))
        return len(gone)

    def set_paused(self, prefix: str, now: int, *, paused: bool) -> CronSteps[bool]:
        """Write the row under the lock, which also holds the ticks that a pause removes."""
        of = self._of(prefix)
        found = yield from self._lock_if_there(of, now)
        row = (found or CronRow()).with_pause(now, paused=paused)
        if row is None:
            return False
        if paused:
            ticks: list[Row] = yield Query("hold_undelivered_ticks", of)
            if ticks:
                yield from self._remove([UndeliveredTick(*tick) for tick in ticks], of, now)
        yield _save(of, row)
        return True

    def listing(self) -> CronSteps[list[CronListing]]:
        """Read every installed row with its next and last tick."""
        rows: list[Row] = yield Query("list_crons", self._kind)
        return [_listing(row) for row in rows]

    def release(self, key: str) -> CronSteps[None]:
        """Take the key of a revived message from the note of its tick, if it has one."""
        if (tick := find_tick(key)) is not None:
            of = {**self._of(tick.prefix), "config_hash": tick.config_hash.text}
            yield Execute("release_tick", {**of, "tick_at": to_millis(tick.at, "at")})

    def _lock(self, of: Parameters, now: int) -> CronSteps[CronRow]:
        """Lock the row of a prefix, and make it if there is none."""
        yield from self._settling.prepare(now)
        yield BEGIN
        rows: list[Row] = yield Query("lock_cron", of)
        return _cron_row(rows[0])

    def _lock_if_there(self, of: Parameters, now: int) -> CronSteps[CronRow | None]:
        """Lock the row of a prefix, but do not make one for a prefix that was never installed."""
        if not (yield Query("look_at_cron", {**of, "config_hash": "", "since": 0})):
            return None
        return (yield from self._lock(of, now))

    def _held_for(
        self, installation: Installation, of: Parameters, row: CronRow
    ) -> CronSteps[Holding]:
        """Read what the decision on an installation depends on."""
        undelivered: list[Row] = []
        if installation.takes_over:
            undelivered = yield Query("hold_undelivered_ticks", of)
        recalled: list[Row] = []
        since = installation.first_at
        if since is not None:
            ours = {**of, "config_hash": installation.config_hash}
            recalled = yield Query("recall_ticks", {**ours, "since": since})
        forgotten = [at for at, is_forgotten_until in recalled if is_forgotten_until]
        return Holding(
            row,
            [UndeliveredTick(*tick) for tick in undelivered],
            {at for at, is_forgotten_until in recalled if not is_forgotten_until},
            forgotten[0] if forgotten else None,
        )

    def _remove(
        self, ticks: Sequence[UndeliveredTick], of: Parameters, now: int
    ) -> CronSteps[None]:
        """Delete messages and notes."""
        yield from self._settling.drop_ticks([tick.key for tick in ticks], now)
        notes = [(tick.config_hash, tick.at) for tick in ticks]
        yield QueryEach("remove_ticks", of, ("config_hash", "tick_at"), notes)

    def _offer(self, records: Sequence[Record], now: int) -> CronSteps[int | None]:
        """Offer, and return the earliest due time of what was created or updated."""
        rows: list[Row] = []
        for start in range(0, len(records), OFFERED_AT_ONCE):
            chunk = records[start : start + OFFERED_AT_ONCE]
            (changed,) = yield from self._settling.offer([chunk], now, None, hurried=False)
            rows += changed
        keys = {key for key, created, *_ in rows if created is not None}
        return min([record.due_at for record in records if record.key in keys], default=None)

    def _forget(self, of: Parameters, now: int) -> CronSteps[None]:
        """Delete the notes of old ticks that are over, and remember the latest of them."""
        bounds = {"now": now, "keep": REMEMBERED, "limit": FORGET_AT_ONCE}
        gone: list[Row] = yield Query("forget_ticks", {**of, **bounds})
        if gone:
            yield Execute("raise_forgotten", {**of, "forgotten_until": max(gone)[0]})

    def _of(self, prefix: str) -> dict[str, int | str]:
        return {**self._kind, "prefix": prefix}


def _save(of: Parameters, row: CronRow) -> Execute:
    return Execute("save_cron", {**of, **row._asdict()})


def _cron_row(row: Row) -> CronRow:
    config_hash, schedule, generation, installed, paused, created_until = row[:6]
    return CronRow(config_hash, schedule, generation, bool(installed), bool(paused), created_until)


def _listing(row: Row) -> CronListing:
    listing = CronListing(*row)
    return listing._replace(paused=bool(listing.paused))
