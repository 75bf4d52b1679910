"""The crons of the SQL stores; see `cron_table.CronTable`."""

from collections.abc import Iterable

from duequeue.instants import to_millis
from duequeue.port.cron_table import CronListing, CronRow, CronSteps, Glance, Memory, TickRow
from duequeue.schedules.tick import find_tick
from duequeue.stores.sql.commands import BEGIN, Execute, Query, QueryEach, Row
from duequeue.stores.sql.settling import Settling

FORGET_AT_ONCE = 200


class SqlCronTable:
    """The crons of one kind of message in an SQL database."""

    def __init__(self, kind_id: int, settling: Settling) -> None:
        self._kind = {"kind_id": kind_id}
        self._settling = settling

    def glance(self, prefix: str, config_hash: str, since: int) -> CronSteps[Glance | None]:
        """Read the row, joined to its ticks."""
        of = {**self._of(prefix), "config_hash": config_hash, "since": since}
        rows: list[Row] = yield Query("glance_at_cron", of)
        if not rows:
            return None
        return Glance(_cron_row(rows[0]), frozenset(row[6] for row in rows if row[6] is not None))

    def lock(self, prefix: str, now: int) -> CronSteps[CronRow]:
        """Lock the row, made now if there is none."""
        yield from self._settling.prepare(now)
        yield BEGIN
        rows: list[Row] = yield Query("lock_cron", self._of(prefix))
        return _cron_row(rows[0])

    def save(self, prefix: str, row: CronRow) -> CronSteps[None]:
        """Update the row."""
        yield Execute("save_cron", {**self._of(prefix), **row._asdict()})

    def hold_undelivered(self, prefix: str) -> CronSteps[list[TickRow]]:
        """Lock the messages that were never claimed."""
        rows: list[Row] = yield Query("hold_undelivered_ticks", self._of(prefix))
        return [TickRow(*row) for row in rows]

    def remove(self, prefix: str, ticks: Iterable[TickRow], now: int) -> CronSteps[None]:
        """Delete the messages, then the ticks."""
        gone = list(ticks)
        if gone:
            yield from self._settling.drop_ticks([tick.key for tick in gone], now)
            rows = [(tick.config_hash, tick.at) for tick in gone]
            yield QueryEach("remove_ticks", self._of(prefix), ("config_hash", "tick_at"), rows)

    def recall(self, prefix: str, config_hash: str, since: int) -> CronSteps[Memory]:
        """Read the ticks, and what stands for the forgotten ones."""
        of = {**self._of(prefix), "config_hash": config_hash}
        known: list[Row] = yield Query("recall_ticks", {**of, "since": since})
        forgotten: list[Row] = yield Query("recall_forgotten", of)
        return Memory(frozenset(row[0] for row in known), forgotten[0][0] if forgotten else None)

    def remember(self, prefix: str, ticks: Iterable[TickRow]) -> CronSteps[None]:
        """Insert the ticks."""
        created = list(ticks)
        if created:
            columns = ("config_hash", "tick_at", "key")
            yield QueryEach("remember_ticks", self._of(prefix), columns, created)

    def release(self, key: str) -> CronSteps[None]:
        """Make a message that was a tick one like any other; the tick itself has run."""
        if (tick := find_tick(key)) is not None:
            of = {**self._of(tick.prefix), "config_hash": tick.config_hash.text}
            yield Execute("release_tick", {**of, "tick_at": to_millis(tick.at, "at")})

    def forget(self, prefix: str, config_hash: str, now: int, keep: int) -> CronSteps[None]:
        """Delete old ticks that ran, and note the latest of them."""
        of = {**self._of(prefix), "config_hash": config_hash}
        bounds = {"now": now, "keep": keep, "limit": FORGET_AT_ONCE}
        gone: list[Row] = yield Query("forget_ticks", {**of, **bounds})
        if gone:
            yield Execute("raise_forgotten", {**of, "forgotten_until": max(gone)[0]})

    def listing(self) -> CronSteps[list[CronListing]]:
        """Read every installed row with its next and last tick."""
        rows: list[Row] = yield Query("list_crons", self._kind)
        return [_listing(row) for row in rows]

    def _of(self, prefix: str) -> dict[str, int | str]:
        return {**self._kind, "prefix": prefix}


def _cron_row(row: Row) -> CronRow:
    config_hash, schedule, generation, installed, paused, created_until = row[:6]
    return CronRow(config_hash, schedule, generation, bool(installed), bool(paused), created_until)


def _listing(row: Row) -> CronListing:
    listing = CronListing(*row)
    return listing._replace(paused=bool(listing.paused))
