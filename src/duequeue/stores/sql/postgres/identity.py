"""Finds out which database a connection leads to."""

from typing import NamedTuple
from weakref import WeakKeyDictionary

from duequeue.port.store import Steps
from duequeue.stores.sql.commands import Query, Row
from duequeue.stores.sql.migrations import missing_tables


class Identity(NamedTuple):
    """The instant when the server started, and the numbers of the database and of our table."""

    began_at: int
    database: int
    table: int | None


class Seen(NamedTuple):
    """What a connection leads to while it has this search path, if the server reports that."""

    identity: Identity
    search_path: str | None


# A connection stays in its database, so it is asked only once.
_seen: WeakKeyDictionary[object, Seen] = WeakKeyDictionary()


def identify() -> Steps[Identity]:
    """Ask a connection what it leads to."""
    rows: list[Row] = yield Query("identify_database")
    return Identity(*rows[0])


def recall(connection: object, search_path: str | None) -> Identity | None:
    """Return what a connection leads to, if that is known already."""
    seen = _seen.get(connection)
    return seen.identity if seen is not None and seen.search_path == search_path else None


def remember(connection: object, identity: Identity, search_path: str | None) -> Identity:
    """Keep what a connection leads to as long as the connection exists."""
    if identity.table is None:
        raise missing_tables("the database of the given connection, or its search_path,")
    _seen[connection] = Seen(identity, search_path)
    return identity
