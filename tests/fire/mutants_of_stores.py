"""Bugs of the stores: queries that say something else, and methods that do something else."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from duequeue.drive.steps import at_once
from duequeue.port.store import Burial, Lease
from duequeue.stores.memory.history_table import MemorySettling
from duequeue.stores.memory.store import MemoryStore
from duequeue.stores.memory.table import MemoryMessage, MemoryTable
from duequeue.stores.sql.catalogue import load_queries
from duequeue.stores.sql.commands import QueryEach
from duequeue.stores.sql.settling import LEASE, Settling, pairs
from duequeue.stores.sql.store import SqlStore
from duequeue.stores.sql.watermark import Watermark

DIALECTS = ("sqlite", "postgres")
LATER_THAN_ALL = 2**62


def reworded(query: str, words: str, other: str) -> Callable[[], None]:
    """Return a function that replaces words of a query, in every dialect."""

    def change() -> None:
        for dialect in DIALECTS:
            queries = load_queries(dialect)
            pattern = r"\s+".join(map(re.escape, words.split()))
            text, found = re.subn(pattern, other, queries[query])
            if not found:
                raise LookupError(f"{query} of {dialect} no longer says: {words}")
            queries[query] = text

    return change


def rewritten(query: str, **texts: str) -> Callable[[], None]:
    """Return a function that replaces a query, with one text for each dialect."""

    def change() -> None:
        for dialect, text in texts.items():
            load_queries(dialect)[query] = text

    return change


def _find_instead_of_removing(_: Settling, burials: Sequence[Burial], __: int) -> QueryEach:
    return QueryEach("find_held", {}, LEASE, pairs([burial.lease for burial in burials]))


def _bury_without_keeping(store: SqlStore, burials: Sequence[Burial], now: int, **_: Any) -> Any:
    return (yield from store.ack([burial.lease for burial in burials], now))


def _ack_without_history(settling: Settling, leases: Sequence[Lease], now: int) -> Any:
    days, settling._days = settling._days, None  # noqa: SLF001 - the bug is inside
    try:
        return (yield from _acks(settling, leases, now))
    finally:
        settling._days = days  # noqa: SLF001 - likewise


_acks = Settling.ack

SQL_CHANGES: Mapping[str, Callable[[], None]] = {
    "claim ignores the end of a lease": reworded(
        "claim_messages", "AND leased_until <= :now", "AND 0 = 0"
    ),
    "claim comes a millisecond early": reworded(
        "claim_messages", "due_at <= :now AND", "due_at <= :now + 1 AND"
    ),
    "claim does not count": reworded("claim_messages", "2147483646) + 1", "2147483646) + 0"),
    "claim never delivers twice": reworded(
        "claim_messages", "leased_until <= :now", "leased_until <= :now AND attempt = 0"
    ),
    "claim goes by id": reworded("claim_messages", "ORDER BY due_at, id", "ORDER BY id"),
    "ack ignores the token": rewritten(
        "remove_messages",
        sqlite="DELETE FROM duequeue_message WHERE id = :id RETURNING id, :token",
        postgres="DELETE FROM duequeue_message WHERE id = ANY(CAST(:id AS bigint [])) RETURNING id",
    ),
    "extend revives a lost lease": rewritten(
        "extend_leases",
        sqlite="UPDATE duequeue_message SET leased_until = :until "
        "WHERE id = :id RETURNING id, :token",
        postgres="UPDATE duequeue_message SET leased_until = :until "
        "WHERE id = ANY(CAST(:id AS bigint [])) RETURNING id",
    ),
    "update keeps the payload": reworded(
        "offer_messages", "SET payload = excluded.payload", "SET payload = stored.payload"
    ),
    "update keeps the attempts": reworded(
        "offer_messages", "attempt = 0", "attempt = stored.attempt"
    ),
    "update keeps the lease": reworded(
        "offer_messages",
        "leased_until = -62135596800000, lease_token = 0",
        "leased_until = stored.leased_until, lease_token = stored.lease_token",
    ),
    "an equal offer updates": reworded(
        "offer_messages", "stored.payload != excluded.payload OR", "0 = 0 OR"
    ),
    "bury does not remove": lambda: setattr(
        Settling, "_removal_of_parked", _find_instead_of_removing
    ),
    "bury does not keep": lambda: setattr(SqlStore, "bury", _bury_without_keeping),
    "revive leaves the burial": reworded("forget_burials", "WHERE id =", "WHERE 0 = 1 AND id ="),
    "revive ignores the id": reworded(
        "lock_buried", "(id = :id AND buried_at = :buried_at)", "0 = 0"
    ),
    "reschedule keeps the lease": reworded(
        "reschedule_message",
        "leased_until = -62135596800000, lease_token = 0",
        "leased_until = leased_until, lease_token = lease_token",
    ),
    "reschedule forgets the attempts": reworded(
        "reschedule_message", "updated_at = :now", "updated_at = :now, attempt = 0"
    ),
    "a list goes by id": reworded("list_messages", "ORDER BY due_at, id", "ORDER BY id"),
    "a list ignores leases": reworded(
        "list_messages", "leased_until >= :leased_from", ":leased_from = :leased_from"
    ),
    "the mark ignores offers": lambda: setattr(Watermark, "lower", lambda *_: None),
    "cron forgets its ticks": reworded(
        "recall_ticks", "AND config_hash = :config_hash", "AND config_hash = :config_hash AND 0 = 1"
    ),
    "an ack without history": lambda: setattr(Settling, "ack", _ack_without_history),
}


_take_due = MemoryTable.take_due


def _take_leased_too(table: MemoryTable, now: int) -> MemoryMessage | None:
    table._free_ended(LATER_THAN_ALL)  # noqa: SLF001 - the bug is inside
    found = table._waiting.first(now)  # noqa: SLF001 - likewise
    return None if found is None else found[1]


def _hold_without_token(
    store: MemoryStore, leases: Sequence[Lease]
) -> list[tuple[MemoryMessage, Lease]]:
    by_key = store._table.by_key  # noqa: SLF001 - the bug is inside
    found = [(by_key.get(lease.key), lease) for lease in leases]
    return [(entry, lease) for entry, lease in found if entry and entry.id == lease.id]


def _leave_buried(_: MemorySettling, entry: MemoryMessage, *facts: Any) -> int:
    return entry.id


@at_once
def _bury_nowhere(store: MemoryStore, burials: Sequence[Burial], now: int, **_: Any) -> set[int]:
    held = store._held([burial.lease for burial in burials])  # noqa: SLF001 - as above
    return {store._settling.ack(entry, lease, now) for entry, lease in held}  # noqa: SLF001


MEMORY_CHANGES: Mapping[str, Callable[[], None]] = {
    "claim ignores the end of a lease": lambda: setattr(MemoryTable, "take_due", _take_leased_too),
    "claim comes a millisecond early": lambda: setattr(
        MemoryTable, "take_due", lambda table, now: _take_due(table, now + 1)
    ),
    "ack ignores the token": lambda: setattr(MemoryStore, "_held", _hold_without_token),
    "bury does not remove": lambda: setattr(MemorySettling, "bury", _leave_buried),
    "bury does not keep": lambda: setattr(MemoryStore, "bury", _bury_nowhere),
}
