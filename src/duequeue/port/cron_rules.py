"""What an installation changes, decided once for every store."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from duequeue.port.cron_table import CronRow, Installation, Standing, Tick
from duequeue.port.store import Record


class UndeliveredTick(NamedTuple):
    """A tick in the queue that was never claimed, and the key of its message."""

    config_hash: str
    at: int
    key: str


class Holding(NamedTuple):
    """What a store holds of a prefix at the moment of an installation.

    `undelivered` are the ticks of every configuration; only an installation that takes over needs
    them. `known` and `forgotten_until` are about the installation's configuration: the instants
    that have a note, at least from the installation's `first_at` on, and how far notes are gone.
    """

    row: CronRow
    undelivered: Sequence[UndeliveredTick] = ()
    known: Collection[int] = ()
    forgotten_until: int | None = None


class Decision(NamedTuple):
    """What to do: remove these ticks, offer these messages, note these ticks, save this row.

    The records are to be offered in this order, and have distinct keys. Without a row, the stored
    one stays as it is.
    """

    standing: Standing
    removed: Sequence[UndeliveredTick] = ()
    offered: Sequence[Record] = ()
    noted: Sequence[Tick] = ()
    row: CronRow | None = None


def decide(installation: Installation, holding: Holding) -> Decision:
    """Decide what an installation changes."""
    ours, takes_over = installation.config_hash, installation.takes_over
    row = _taken_over(holding.row, installation) if takes_over else holding.row
    undelivered = holding.undelivered if takes_over else ()
    removed = [tick for tick in undelivered if tick.config_hash != ours]
    standing = row.standing(ours)
    if standing is not Standing.RUNNING:
        return Decision(standing, removed, row=row if takes_over else None)
    replaceable = {tick.at for tick in undelivered if tick.config_hash == ours}
    chosen = _chosen(installation, holding, replaceable, row.created_until)
    return Decision(
        standing,
        removed,
        [Record(tick.key, tick.payload, tick.due_at, tick.headers, takes_over) for tick in chosen],
        [tick for tick in chosen if tick.at not in holding.known],
        _advanced(row, installation.created_until),
    )


def _taken_over(row: CronRow, installation: Installation) -> CronRow:
    if row.installed and row.config_hash == installation.config_hash:
        return row._replace(schedule=installation.schedule)
    return CronRow(
        installation.config_hash,
        installation.schedule,
        row.generation + 1,
        installed=True,
        paused=row.paused,
    )


def _chosen(
    installation: Installation,
    holding: Holding,
    replaceable: Collection[int],
    created_until: int | None,
) -> Collection[Tick]:
    """Choose the ticks to offer; those that were delivered before are left alone."""
    _, _, known, forgotten_until = holding
    wanted = installation.ahead
    if created_until is not None:  # up to there, another node may have made up for them meanwhile
        missed = [tick for tick in installation.missed if tick.at > created_until]
        wanted = [*missed, *wanted]
    chosen: dict[int, Tick] = {}
    for tick in wanted:
        is_new = tick.at not in known and (forgotten_until is None or tick.at > forgotten_until)
        if not is_new and tick.at not in replaceable:
            continue
        # A tick given twice is as if offered twice: the later one counts if it may replace.
        if installation.takes_over or tick.at not in chosen:
            chosen[tick.at] = tick
    return chosen.values()


def _advanced(row: CronRow, until: int | None) -> CronRow:
    """Move `created_until` forward; it never goes back."""
    if until is None or (row.created_until is not None and row.created_until >= until):
        return row
    return row._replace(created_until=until)
