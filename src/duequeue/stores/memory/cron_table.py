"""The crons of the memory store; see `port.cron_table.CronTable`."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

from duequeue.drive.steps import at_once
from duequeue.instants import to_millis
from duequeue.message import OfferOutcome
from duequeue.port.cron_rules import Holding, UndeliveredTick, decide
from duequeue.port.cron_table import (
    REMEMBERED,
    CronListing,
    CronLook,
    CronRow,
    Installation,
    Installed,
)
from duequeue.port.store import Record
from duequeue.schedules.tick import find_tick
from duequeue.stores.memory.history_table import MemorySettling
from duequeue.stores.memory.table import MemoryTable


class MemoryCrons:
    """The rows by prefix; by prefix and hash, the keys of ticks, and what is forgotten until."""

    def __init__(self) -> None:
        self.rows: dict[str, CronRow] = {}
        self.notes: defaultdict[tuple[str, str], dict[int, str]] = defaultdict(dict)
        self.forgotten: dict[tuple[str, str], int] = {}


class MemoryCronTable:
    """The crons of one kind of message in this process. The caller holds the lock."""

    def __init__(
        self,
        table: MemoryTable,
        settling: MemorySettling,
        crons: MemoryCrons,
        offer: Callable[[Record, int], OfferOutcome],
    ) -> None:
        self._table = table
        self._settling = settling
        self._crons = crons
        self._offer = offer

    @at_once
    def look(self, prefix: str, config_hash: str, since: int) -> CronLook:
        """Look up the row and the notes."""
        row = self._crons.rows.get(prefix, CronRow())
        return CronLook(
            row, frozenset(at for at in self._notes(prefix, config_hash) if at >= since)
        )

    @at_once
    def install(self, installation: Installation, now: int) -> Installed:
        """Decide, and carry out the decision."""
        prefix, config_hash = installation.prefix, installation.config_hash
        decision = decide(installation, self._held_for(prefix, config_hash))
        self._remove(prefix, decision.removed, now)
        changed = [
            record.due_at
            for record in decision.offered
            if self._offer(record, now) is not OfferOutcome.IGNORED
        ]
        if decision.noted:
            notes = self._crons.notes[prefix, config_hash]
            notes.update((tick.at, tick.key) for tick in decision.noted)
            self._forget(prefix, config_hash, now)
        if decision.row is not None:
            self._crons.rows[prefix] = decision.row
        return Installed(decision.standing, len(decision.noted), min(changed, default=None))

    @at_once
    def uninstall(self, prefix: str, config_hash: str, now: int) -> int:
        """Remove the ticks of this configuration."""
        gone = [tick for tick in self._undelivered(prefix) if tick.config_hash == config_hash]
        self._remove(prefix, gone, now)
        row = self._crons.rows.get(prefix)
        if row is not None and row.config_hash == config_hash:
            self._crons.rows[prefix] = row._replace(installed=False)
        return len(gone)

    @at_once
    def set_paused(self, prefix: str, now: int, *, paused: bool) -> bool:
        """Change the row, and remove the ticks of every configuration for a pause."""
        row = self._crons.rows.get(prefix, CronRow()).with_pause(now, paused=paused)
        if row is None:
            return False
        if paused:
            self._remove(prefix, self._undelivered(prefix), now)
        self._crons.rows[prefix] = row
        return True

    @at_once
    def listing(self) -> list[CronListing]:
        """Walk over everything."""
        rows = sorted(self._crons.rows.items())
        return [self._listed(prefix, row) for prefix, row in rows if row.installed]

    @at_once
    def release(self, key: str) -> None:
        """Take the key of a revived message from the note of its tick, if it has one."""
        if (tick := find_tick(key)) is not None:
            notes = self._notes(tick.prefix, tick.config_hash.text)
            at = to_millis(tick.at, "at")
            if at in notes:
                notes[at] = ""

    def _held_for(self, prefix: str, config_hash: str) -> Holding:
        return Holding(
            self._crons.rows.get(prefix, CronRow()),
            self._undelivered(prefix),
            self._notes(prefix, config_hash),
            self._crons.forgotten.get((prefix, config_hash)),
        )

    def _remove(self, prefix: str, ticks: Iterable[UndeliveredTick], now: int) -> None:
        for tick in ticks:
            self._settling.drop(self._table.by_key[tick.key], now)
            del self._crons.notes[prefix, tick.config_hash][tick.at]

    def _forget(self, prefix: str, config_hash: str, now: int) -> None:
        """Drop the notes of old ticks that are over, and remember the latest of them."""
        notes = self._crons.notes[prefix, config_hash]
        past = sorted((at for at in notes if at <= now), reverse=True)
        over = [at for at in past[REMEMBERED:] if notes[at] not in self._table.by_key]
        for at in over:
            del notes[at]
        if over:
            before = self._crons.forgotten.get((prefix, config_hash), over[0])
            self._crons.forgotten[prefix, config_hash] = max(over[0], before)

    def _listed(self, prefix: str, row: CronRow) -> CronListing:
        ahead: list[int] = []
        given: list[int] = []
        for config_hash, at, key in self._ticks(prefix):
            if not self._is_undelivered(key):
                given.append(at)
            elif config_hash == row.config_hash:
                ahead.append(at)
        return CronListing(
            prefix,
            row.config_hash,
            row.schedule,
            row.generation,
            row.paused,
            min(ahead, default=None),
            max(given, default=None),
        )

    def _undelivered(self, prefix: str) -> list[UndeliveredTick]:
        return [
            UndeliveredTick(*tick) for tick in self._ticks(prefix) if self._is_undelivered(tick[2])
        ]

    def _ticks(self, prefix: str) -> Iterator[tuple[str, int, str]]:
        for (each, config_hash), notes in self._crons.notes.items():
            if each == prefix:
                yield from ((config_hash, at, key) for at, key in notes.items())

    def _is_undelivered(self, key: str) -> bool:
        entry = self._table.by_key.get(key)
        return entry is not None and entry.attempt == 0

    def _notes(self, prefix: str, config_hash: str) -> dict[int, str]:
        return self._crons.notes.get((prefix, config_hash), {})
