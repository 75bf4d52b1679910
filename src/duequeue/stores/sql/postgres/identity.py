"""Finds out which database a connection leads to, and whether it is the database of the queue.

A queue is a number in the tables. In another database the same number may belong to another queue,
so a caller's connection is compared with the queue's own connections before it is used.
"""

from datetime import timedelta
from typing import NamedTuple
from weakref import WeakKeyDictionary

from duequeue.drive.actions import performer, performer_async
from duequeue.drive.retrying import retrying
from duequeue.drive.steps import drive, drive_async
from duequeue.errors import WrongDatabase
from duequeue.port.store import AsyncSession, Session, Steps
from duequeue.retry_policy import RetryPolicy
from duequeue.stores.sql.commands import Query, Row
from duequeue.stores.sql.migrations import missing_tables
from duequeue.stores.sql.postgres.settings import Address

# After a restart of the server, the first connections of the pool are lost.
RETRY = RetryPolicy(budget=timedelta(seconds=10))


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


class Home:
    """The database of a queue, as its own blocking connections see it."""

    def __init__(self, session: Session, address: Address) -> None:
        self._session = session
        self.address = address
        self.identity: Identity | None = None

    def look(self) -> None:
        """Ask again, because the server may have been replaced."""
        self.identity = drive(retrying(RETRY, identify), performer(self._session))

    def require(self, identity: Identity) -> None:
        """Raise unless a connection leads here."""
        if identity != self.identity:
            raise wrong_database(self.address)


class AsyncHome:
    """The same for awaiting connections."""

    def __init__(self, session: AsyncSession, address: Address) -> None:
        self._session = session
        self.address = address
        self.identity: Identity | None = None

    async def look(self) -> None:
        """Ask again, because the server may have been replaced."""
        steps = retrying(RETRY, identify)
        self.identity = await drive_async(steps, performer_async(self._session))

    def require(self, identity: Identity) -> None:
        """Raise unless a connection leads here."""
        if identity != self.identity:
            raise wrong_database(self.address)


def wrong_database(address: Address) -> WrongDatabase:
    """Return the error for a connection that leads elsewhere."""
    return WrongDatabase(
        f"connection leads to another database or schema than the queue, which is in {address}; "
        "nothing was stored: open the queue with the URL of the connection's database"
    )
