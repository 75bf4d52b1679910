"""Finds out which database a connection leads to."""

from typing import NamedTuple
from weakref import WeakKeyDictionary

from duequeue.port.store import Steps
from duequeue.stores.sql.commands import Query, Row
from duequeue.stores.sql.migrations import missing_tables


class Identity(NamedTuple):
    """Which server or Galera cluster it is, the name of the database, and whether we are in it."""

    server: str
    database: str | None
    has_tables: bool


# A connection is asked for its server only once, since it stays there.
_seen: WeakKeyDictionary[object, Identity] = WeakKeyDictionary()


def identify() -> Steps[Identity]:
    """Ask a connection what it leads to."""
    rows: list[Row] = yield Query("identify_database")
    server, database, has_tables = rows[0]
    status: list[Row] = yield Query("find_cluster")
    cluster = status[0][1] if status else ""
    if cluster.strip("0-"):
        server = cluster
    return Identity(server, database, bool(has_tables))


def current_database() -> Steps[str | None]:
    """Ask a connection which database it uses now, because USE may have changed it."""
    rows: list[Row] = yield Query("current_database")
    place: str | None = rows[0][0]
    return place


def add_history_day(day: int) -> Steps[None]:
    """Make room for a day of the history."""
    yield Query("add_history_day", {"day": day})


def recall(connection: object) -> Identity | None:
    """Return what a connection leads to, if that is known already."""
    return _seen.get(connection)


def remember(connection: object, identity: Identity) -> Identity:
    """Keep what a connection leads to as long as the connection exists."""
    if not identity.has_tables:
        raise missing_tables("the database of the given connection")
    _seen[connection] = identity
    return identity
