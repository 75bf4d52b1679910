"""What is done to the ticks of a prefix, once for every store; each function is one transaction.

Whoever changes ticks holds the prefix's lock from the first step to the commit. So each sees what
the one before has done, and a process that dies in between has done nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple

from duequeue.message import OfferOutcome
from duequeue.port.cron_table import CronRow, CronTable
from duequeue.port.cron_table import TickRow as Created
from duequeue.port.store import Record, Steps, Store

# How many ticks that ran are remembered one by one, for each configuration of a prefix.
REMEMBERED = 100
OFFERED_AT_ONCE = 1000


class Tick(NamedTuple):
    """A tick to create: its instant, and its message."""

    at: int
    record: Record


@dataclass(frozen=True)
class Order:
    """What an installation wants done.

    `ahead` are ticks to come, `late` are ticks to make up for, unless another node was faster.
    With `takes_over`, any other configuration gives way and ticks in the queue are replaced;
    without, the order counts only while its configuration is the installed one.
    """

    prefix: str
    config_hash: str
    schedule: str = ""
    ahead: Sequence[Tick] = ()
    late: Sequence[Tick] = ()
    created_until: int | None = None
    takes_over: bool = True


class Standing(Enum):
    """How an installation finds itself."""

    RUNNING = auto()
    PAUSED = auto()
    REPLACED = auto()
    UNINSTALLED = auto()


class Report(NamedTuple):
    """What became of an order: how many ticks are new, and the earliest due time to announce."""

    standing: Standing
    created: int = 0
    due_at: int | None = None


def standing(row: CronRow, config_hash: str) -> Standing:
    """Tell how the installation of a configuration stands."""
    if not row.installed:
        return Standing.UNINSTALLED
    if row.config_hash != config_hash:
        return Standing.REPLACED
    return Standing.PAUSED if row.paused else Standing.RUNNING


def install(store: Store, order: Order, now: int) -> Steps[Report]:
    """Carry out an order."""
    row = yield from store.cron.lock(order.prefix, now)
    undelivered: set[int] = set()
    if order.takes_over:
        row = _taken_over(row, order)
        held = yield from store.cron.hold_undelivered(order.prefix)
        others = [tick for tick in held if tick.config_hash != order.config_hash]
        yield from store.cron.remove(order.prefix, others, now)
        undelivered = {tick.at for tick in held if tick.config_hash == order.config_hash}
    report = Report(standing(row, order.config_hash))
    if report.standing is Standing.RUNNING:
        report = yield from _create(store, order, row.created_until, undelivered, now)
        row = row._replace(created_until=_latest(row.created_until, order.created_until))
    if report.standing is Standing.RUNNING or order.takes_over:
        yield from store.cron.save(order.prefix, row)
    return report


def uninstall(cron: CronTable, prefix: str, config_hash: str, now: int) -> Steps[int]:
    """Remove the undelivered ticks of one configuration, and count them."""
    if (yield from cron.glance(prefix, config_hash, 0)) is None:
        return 0
    row = yield from cron.lock(prefix, now)
    held = yield from cron.hold_undelivered(prefix)
    gone = [tick for tick in held if tick.config_hash == config_hash]
    yield from cron.remove(prefix, gone, now)
    if row.runs(config_hash):
        yield from cron.save(prefix, row._replace(installed=False))
    return len(gone)


def pause(cron: CronTable, prefix: str, now: int) -> Steps[bool]:
    """Remove every undelivered tick, and have none created; tell whether that is a change."""
    row = yield from _locked_if_installed(cron, prefix, now)
    if row is None or row.paused:
        return False
    held = yield from cron.hold_undelivered(prefix)
    yield from cron.remove(prefix, held, now)
    yield from cron.save(prefix, row._replace(paused=True))
    return True


def resume(cron: CronTable, prefix: str, now: int) -> Steps[bool]:
    """Have ticks created again from now on; those of the pause are not missed."""
    row = yield from _locked_if_installed(cron, prefix, now)
    if row is None or not row.paused:
        return False
    yield from cron.save(prefix, row._replace(paused=False, created_until=now))
    return True


def _locked_if_installed(cron: CronTable, prefix: str, now: int) -> Steps[CronRow | None]:
    """Lock without leaving a row behind for a prefix that nobody ever installed."""
    if (yield from cron.glance(prefix, "", 0)) is None:
        return None
    row = yield from cron.lock(prefix, now)
    return row if row.installed else None


def _taken_over(row: CronRow, order: Order) -> CronRow:
    if row.runs(order.config_hash):
        return row._replace(schedule=order.schedule)
    return CronRow(
        order.config_hash,
        order.schedule,
        row.generation + 1,
        installed=True,
        paused=row.paused,
    )


def _create(
    store: Store, order: Order, created_until: int | None, undelivered: set[int], now: int
) -> Steps[Report]:
    late = [t for t in order.late if created_until is not None and t.at > created_until]
    wanted = [*late, *order.ahead]
    if not wanted:
        return Report(Standing.RUNNING)
    first = min(tick.at for tick in wanted)
    memory = yield from store.cron.recall(order.prefix, order.config_hash, first)
    # What somebody holds, or has handled, is left alone whatever its payload would be now.
    offered = [tick for tick in wanted if tick.at in undelivered or memory.allows(tick.at)]
    records = [tick.record._replace(replace=order.takes_over) for tick in offered]
    due_at = yield from _offer(store, records, now)
    new = {t.at: t.record.key for t in offered if t.at not in memory.known}
    created = [Created(order.config_hash, at, key) for at, key in new.items()]
    yield from store.cron.remember(order.prefix, created)
    yield from store.cron.forget(order.prefix, order.config_hash, now, REMEMBERED)
    return Report(Standing.RUNNING, len(new), due_at)


def _offer(store: Store, records: Sequence[Record], now: int) -> Steps[int | None]:
    """Offer, and return the earliest due time of what was not there before."""
    changed: list[int] = []
    for start in range(0, len(records), OFFERED_AT_ONCE):
        chunk = records[start : start + OFFERED_AT_ONCE]
        outcomes = yield from store.offer(chunk, now)
        for record, outcome in zip(chunk, outcomes, strict=True):
            if outcome is not OfferOutcome.IGNORED:
                changed.append(record.due_at)
    return min(changed, default=None)


def _latest(*instants: int | None) -> int | None:
    return max((instant for instant in instants if instant is not None), default=None)
