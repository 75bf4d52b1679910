"""Finds out which database a connection leads to, and whether it is the database of the queue.

A queue is a number in the tables. In another database the same number may belong to another queue,
so a caller's connection is compared with the queue's own connections before it is used.
"""

from datetime import timedelta
from functools import partial
from typing import NamedTuple
from weakref import WeakKeyDictionary

from duequeue.drive.actions import performer, performer_async
from duequeue.drive.retrying import retrying
from duequeue.drive.steps import drive, drive_async
from duequeue.errors import WrongDatabase
from duequeue.port.store import AsyncSession, Session, Steps
from duequeue.retry_policy import RetryPolicy
from duequeue.stores.sql.commands import Query, Row
from duequeue.stores.sql.mariadb.settings import HostAddress
from duequeue.stores.sql.migrations import missing_tables

# After a restart of the server, the first connections of the pool are lost.
RETRY = RetryPolicy(budget=timedelta(seconds=10))


class Identity(NamedTuple):
    """Which server or Galera cluster it is, and the name of the database."""

    server: str
    database: str | None


# A connection is asked for its server only once, since it stays there.
_seen: WeakKeyDictionary[object, Identity] = WeakKeyDictionary()


def identify() -> Steps[tuple[Identity, bool]]:
    """Ask a connection what it leads to, and whether that has our tables."""
    rows: list[Row] = yield Query("identify_database")
    server, database, has_tables = rows[0]
    status: list[Row] = yield Query("find_cluster")
    cluster = status[0][1] if status else ""
    if cluster.strip("0-"):
        server = cluster
    return Identity(server, database), bool(has_tables)


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


def remember(connection: object, identity: Identity, *, has_tables: bool) -> Identity:
    """Keep what a connection leads to as long as the connection exists."""
    if not has_tables:
        raise missing_tables("the database of the given connection")
    _seen[connection] = identity
    return identity


class Home:
    """The database of a queue, as its own blocking connections see it."""

    def __init__(self, session: Session, address: HostAddress) -> None:
        self._session = session
        self.address = address
        self.identity: Identity | None = None

    def look(self) -> None:
        """Ask again, because the server may have been replaced."""
        self.identity, _ = drive(retrying(RETRY, identify), performer(self._session))

    def add_history_day(self, day: int) -> None:
        """Make room for a day on a connection of ours, since that would commit on a caller's."""
        steps = retrying(RETRY, partial(add_history_day, day))
        drive(steps, performer(self._session))

    def require(self, identity: Identity) -> None:
        """Raise unless a connection leads here."""
        if identity != self.identity:
            raise wrong_database(self.address)


class AsyncHome:
    """The same for awaiting connections."""

    def __init__(self, session: AsyncSession, address: HostAddress) -> None:
        self._session = session
        self.address = address
        self.identity: Identity | None = None

    async def look(self) -> None:
        """Ask again, because the server may have been replaced."""
        steps = retrying(RETRY, identify)
        self.identity, _ = await drive_async(steps, performer_async(self._session))

    async def add_history_day(self, day: int) -> None:
        """Make room for a day on a connection of ours, since that would commit on a caller's."""
        steps = retrying(RETRY, partial(add_history_day, day))
        await drive_async(steps, performer_async(self._session))

    def require(self, identity: Identity) -> None:
        """Raise unless a connection leads here."""
        if identity != self.identity:
            raise wrong_database(self.address)


def wrong_database(address: HostAddress) -> WrongDatabase:
    """Return the error for a connection that leads elsewhere."""
    return WrongDatabase(
        f"connection leads to another database than the queue, which is in {address}; nothing was "
        "stored: open the queue with the URL of the connection's database"
    )
