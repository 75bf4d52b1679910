"""Bugs on purpose: each breaks the program inside the worker processes, and has a name.

The drill is worth something only if it finds them. So every mutant says which promise it breaks,
the tour on which that shows, and the stores that it can break.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tests.fire.mutants_of_flows import FLOW_CHANGES
from tests.fire.mutants_of_stores import MEMORY_CHANGES, SQL_CHANGES
from tests.fire.mutants_of_transactions import TRANSACTION_CHANGES
from tests.fire.violations import Broken

SQL = ("sqlite", "postgres")
ALL = ("memory", *SQL)
# What all stores share needs no second server to be found.
FLOWS = ("memory", "sqlite")
SHARED = ("sqlite",)
# Each dialect has transactions of its own.
DIALECTS = (*SQL, "mariadb")


@dataclass(frozen=True)
class Mutant:
    """What a bug breaks, the tour that shows it, and where it applies."""

    broken: Broken
    tour: str
    stores: tuple[str, ...]


MUTANTS: Mapping[str, Mutant] = {
    # The queries of the SQL stores, and the same in memory.
    "claim ignores the end of a lease": Mutant(Broken.OVERLAP, "settling", ALL),
    "claim comes a millisecond early": Mutant(Broken.EARLY, "settling", ALL),
    "claim does not count": Mutant(Broken.ATTEMPT, "settling", SQL),
    "claim never delivers twice": Mutant(Broken.STUCK, "settling", SQL),
    "claim goes by id": Mutant(Broken.ORDER, "alone", SQL),
    "ack ignores the token": Mutant(Broken.STALE, "settling", ALL),
    "extend revives a lost lease": Mutant(Broken.STALE, "settling", SQL),
    "update keeps the payload": Mutant(Broken.PAYLOAD, "settling", SQL),
    "update keeps the attempts": Mutant(Broken.ATTEMPT, "settling", SQL),
    "update keeps the lease": Mutant(Broken.STALE, "settling", SQL),
    "an equal offer updates": Mutant(Broken.OUTCOME, "settling", SQL),
    "bury does not remove": Mutant(Broken.CAME_BACK, "settling", ALL),
    "bury does not keep": Mutant(Broken.BURIAL, "settling", ALL),
    "revive leaves the burial": Mutant(Broken.BURIAL, "settling", SQL),
    "revive ignores the id": Mutant(Broken.SEVERAL, "settling", SQL),
    "reschedule keeps the lease": Mutant(Broken.STALE, "settling", SQL),
    "reschedule forgets the attempts": Mutant(Broken.ATTEMPT, "settling", SQL),
    "a list goes by id": Mutant(Broken.OUTCOME, "alone", SQL),
    "a list ignores leases": Mutant(Broken.OUTCOME, "alone", SQL),
    "the mark ignores offers": Mutant(Broken.ORDER, "alone", SQL),
    "cron forgets its ticks": Mutant(Broken.TICK_DOUBLED, "crons", SQL),
    "an ack without history": Mutant(Broken.HISTORY, "history", SQL),
    # Transactions in the middle of which a statement fails.
    "an error commits": Mutant(Broken.BURIAL, "failing statements", ("sqlite", "mariadb")),
    "an error leaves the transaction open": Mutant(
        Broken.BURIAL, "failing statements", ("mariadb",)
    ),
    "each statement commits": Mutant(Broken.BURIAL, "failing statements", DIALECTS),
    "a settlement is several transactions": Mutant(Broken.BURIAL, "failing statements", DIALECTS),
    "a revival is several transactions": Mutant(
        Broken.CAME_BACK, "failing statements", ("postgres", "mariadb")
    ),
    "a row of history commits before its removal": Mutant(
        Broken.HISTORY, "failing statements", ("mariadb",)
    ),
    # The flows, which all stores share.
    "ack always says yes": Mutant(Broken.TWO_ACKS, "settling", FLOWS),
    "ack_many acks one": Mutant(Broken.CAME_BACK, "settling", FLOWS),
    "extend does nothing": Mutant(Broken.OVERLAP, "settling", FLOWS),
    "release forgets the delay": Mutant(Broken.EARLY, "settling", FLOWS),
    "drop does nothing": Mutant(Broken.CAME_BACK, "settling", FLOWS),
    "an offer that must not replace does": Mutant(Broken.OUTCOME, "settling", FLOWS),
    "poll forgets what it claimed": Mutant(Broken.ATTEMPT, "settling", FLOWS),
    "offer is made again after the ack": Mutant(Broken.CAME_BACK, "settling", FLOWS),
    "offer answers before the commit": Mutant(Broken.LOST, "killed producer", SHARED),
    # Consumers and crons.
    "consumer acks before it handles": Mutant(Broken.LOST, "killed consumer", SHARED),
    "consumer does not extend": Mutant(Broken.OVERLAP, "long handler", SHARED),
    "giving back counts": Mutant(Broken.ATTEMPT, "stopped consumer", FLOWS),
    "each node has its own ticks": Mutant(Broken.TICK_DOUBLED, "crons", SHARED),
    "missed ticks are skipped": Mutant(Broken.TICK_LOST, "crons", FLOWS),
}


def apply(name: str) -> None:
    """Break the program in this process."""
    groups = (SQL_CHANGES, MEMORY_CHANGES, TRANSACTION_CHANGES, FLOW_CHANGES)
    changes: list[Callable[[], None]] = [every[name] for every in groups if name in every]
    if not changes:
        raise LookupError(f"no mutant is called {name!r}")
    for change in changes:
        change()
