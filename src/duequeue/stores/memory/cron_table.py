"""The crons of the memory store; see `cron_table.CronTable`."""

from collections import defaultdict
from collections.abc import Iterable

from duequeue.drive.steps import at_once
from duequeue.instants import to_millis
from duequeue.port.cron_table import CronListing, CronRow, Glance, Memory, TickRow
from duequeue.schedules.tick import find_tick
from duequeue.stores.memory.settling import MemorySettling
from duequeue.stores.memory.table import MemoryTable


class MemoryCrons:
    """The rows: crons by prefix, ticks by prefix and hash, and what stands for forgotten ones."""

    def __init__(self) -> None:
        self.rows: dict[str, CronRow] = {}
        self.ticks: defaultdict[tuple[str, str], dict[int, TickRow]] = defaultdict(dict)
        self.forgotten: dict[tuple[str, str], int] = {}


class MemoryCronTable:
    """The crons of one kind of message in this process. Whoever calls holds the lock."""

    def __init__(self, table: MemoryTable, settling: MemorySettling, crons: MemoryCrons) -> None:
        self._table = table
        self._settling = settling
        self._crons = crons

    @at_once
    def glance(self, prefix: str, config_hash: str, since: int) -> Glance | None:
        """Look both up."""
        row = self._crons.rows.get(prefix)
        return None if row is None else Glance(row, self._known(prefix, config_hash, since))

    @at_once
    def lock(self, prefix: str, now: int) -> CronRow:  # noqa: ARG002 - there is nothing to prepare
        """Look up: the session's lock is lock enough."""
        return self._crons.rows.get(prefix, CronRow())

    @at_once
    def save(self, prefix: str, row: CronRow) -> None:
        """Keep the row."""
        self._crons.rows[prefix] = row

    @at_once
    def hold_undelivered(self, prefix: str) -> list[TickRow]:
        """Look among the messages."""
        return [tick for tick in self._of(prefix) if self._is_undelivered(tick)]

    @at_once
    def remove(self, prefix: str, ticks: Iterable[TickRow], now: int) -> None:
        """Remove message and memory."""
        for tick in ticks:
            self._settling.drop(self._table.by_key[tick.key], now)
            del self._crons.ticks[prefix, tick.config_hash][tick.at]

    @at_once
    def recall(self, prefix: str, config_hash: str, since: int) -> Memory:
        """Look both up."""
        known = self._known(prefix, config_hash, since)
        return Memory(known, self._crons.forgotten.get((prefix, config_hash)))

    @at_once
    def remember(self, prefix: str, ticks: Iterable[TickRow]) -> None:
        """Keep the ticks."""
        for tick in ticks:
            self._crons.ticks[prefix, tick.config_hash][tick.at] = tick

    @at_once
    def release(self, key: str) -> None:
        """Make a message that was a tick one like any other; the tick itself has run."""
        if (found := find_tick(key)) is not None:
            ticks = self._crons.ticks.get((found.prefix, found.config_hash.text), {})
            at = to_millis(found.at, "at")
            if at in ticks:
                ticks[at] = ticks[at]._replace(key="")

    @at_once
    def forget(self, prefix: str, config_hash: str, now: int, keep: int) -> None:
        """Drop old ticks that ran, and note the latest of them."""
        ticks = self._crons.ticks[prefix, config_hash]
        past = sorted((at for at in ticks if at <= now), reverse=True)
        for at in past[keep:]:
            if ticks[at].key not in self._table.by_key:
                del ticks[at]
                before = self._crons.forgotten.get((prefix, config_hash), at)
                self._crons.forgotten[prefix, config_hash] = max(at, before)

    @at_once
    def listing(self) -> list[CronListing]:
        """Walk over everything."""
        return [
            self._listed(prefix, row)
            for prefix, row in sorted(self._crons.rows.items())
            if row.installed
        ]

    def _listed(self, prefix: str, row: CronRow) -> CronListing:
        waiting = {tick for tick in self._of(prefix) if self._is_undelivered(tick)}
        ahead = (tick.at for tick in waiting if tick.config_hash == row.config_hash)
        given = (tick.at for tick in self._of(prefix) if tick not in waiting)
        return CronListing(
            prefix,
            row.config_hash,
            row.schedule,
            row.generation,
            row.paused,
            min(ahead, default=None),
            max(given, default=None),
        )

    def _of(self, prefix: str) -> list[TickRow]:
        every = self._crons.ticks.items()
        return [tick for (each, _), ticks in every if each == prefix for tick in ticks.values()]

    def _known(self, prefix: str, config_hash: str, since: int) -> frozenset[int]:
        ticks = self._crons.ticks.get((prefix, config_hash), {})
        return frozenset(at for at in ticks if at >= since)

    def _is_undelivered(self, tick: TickRow) -> bool:
        entry = self._table.by_key.get(tick.key)
        return entry is not None and entry.attempt == 0
