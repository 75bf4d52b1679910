"""Who takes part, by name; each is imported only where it is measured."""

from dataclasses import dataclass
from enum import Enum
from importlib import import_module

from bench.contender import Contender


class Role(Enum):
    """What a contender is in the comparison."""

    OURS = "ours"
    PEER = "peer"
    LIMIT = "limit"


@dataclass(frozen=True)
class Entry:
    """A contender on a store, and which of ours it is compared with."""

    name: str
    title: str
    store: str
    path: str
    role: Role = Role.PEER
    against: str = "duequeue"
    quick: bool = False

    def load(self) -> type[Contender]:
        """Import it."""
        module, _, name = self.path.partition(":")
        found: type[Contender] = getattr(import_module(f"bench.{module}"), name)
        return found


def _ours(name: str, title: str, store: str, face: str) -> Entry:
    return Entry(name, f"**DueQueue**, {title}", store, f"contenders.duequeue_{face}", Role.OURS, name)


def _limit(name: str, title: str, path: str) -> Entry:
    return Entry(name, f"*{title}*", "postgres", f"limits.{path}", Role.LIMIT)


ENTRIES = (
    _ours("duequeue", "PostgreSQL", "postgres", "postgres:OnPostgres"),
    _ours("duequeue-tasks", "PostgreSQL, asyncio", "postgres", "tasks:Tasks"),
    Entry("pgqueuer", "pgqueuer", "postgres", "contenders.pgqueuer:Pgqueuer", quick=True),
    Entry("procrastinate", "procrastinate", "postgres", "contenders.procrastinate:Procrastinate"),
    _limit("seed", "the seed's algorithm", "seed:Seed"),
    _limit("pgbench", "limit: pgbench, same statements", "pgbench:Pgbench"),
    _limit("copy", "limit: COPY, same table", "copy:Copy"),
    _limit("delete-returning", "limit: DELETE RETURNING, no lease", "delete_returning:Delete"),
    _limit("fsync", "limit: one fdatasync each", "fsync:Fsync"),
)
BY_NAME = {entry.name: entry for entry in ENTRIES}


def open_contender(name: str, url: str) -> Contender:
    """Open a contender on a store."""
    contender = BY_NAME[name].load()(url)
    contender.name = name
    return contender
