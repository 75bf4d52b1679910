"""The same sessions, awaiting, on asyncmy."""

from functools import partial
from math import inf
from typing import Any, TypeVar

from asyncmy.connection import Connection
from asyncmy.errors import MySQLError

from duequeue.drive.steps import drive_async
from duequeue.errors import InvalidArgument
from duequeue.port.store import Operation
from duequeue.stores.sql.connections.given_connection import async_finder, async_refused
from duequeue.stores.sql.mariadb.accepted import explained, facts_of, refuse_autocommit
from duequeue.stores.sql.mariadb.connections_async import send_async
from duequeue.stores.sql.mariadb.conversation import Conversation, command_name
from duequeue.stores.sql.mariadb.identity import (
    AsyncHome,
    Identity,
    current_database,
    identify,
    recall,
    remember,
)

T = TypeVar("T")

ACCEPTED = "an asyncmy connection, or an SQLAlchemy AsyncSession or AsyncConnection over asyncmy"


class BorrowedAsyncMariadbSession:
    """Runs operations on a caller's connection."""

    def __init__(self, given: object, home: AsyncHome) -> None:
        self._find = async_finder(given, _checked)
        self.home = home
        if isinstance(given, Connection) and not given.connected:
            raise InvalidArgument("connection", "is closed")

    async def run(
        self,
        operation: Operation[T],
        seconds: float = inf,  # noqa: ARG002 - the caller decides how long it may take
        *,
        consumes: bool = False,  # noqa: ARG002
    ) -> T:
        """Run one operation; the caller commits."""
        connection = await self._find()
        try:
            await self._admit(connection)
            return await drive_async(operation(), partial(self._perform, connection))
        except MySQLError as error:
            raise explained(error, self.home.address) from error

    async def close(self) -> None:
        """Leave the connection to its owner."""

    async def _perform(self, connection: Any, command: Any) -> object:
        if command_name(command) == "add_history_day":
            await self.home.add_history_day(command.parameters["day"])
            return []
        talk = Conversation(facts_of(connection), borrowed=True)
        return await drive_async(talk.perform(command), partial(send_async, connection))

    async def _admit(self, connection: Any) -> None:
        """Raise unless the connection leads to the database of the queue."""
        identity = await self._recall(connection) or await self._look(connection)
        if identity != self.home.identity:
            await self.home.look()
            self.home.require(await self._look(connection))

    async def _recall(self, connection: Any) -> Identity | None:
        known = recall(connection)
        if known is None:
            return None
        place = await drive_async(current_database(), partial(self._perform, connection))
        return known if known.database == place else None

    async def _look(self, connection: Any) -> Identity:
        identity, has_tables = await drive_async(identify(), partial(self._perform, connection))
        return remember(connection, identity, has_tables=has_tables)


def _checked(given: object) -> Any:
    if not isinstance(given, Connection):
        raise async_refused(given, ACCEPTED)
    if given.connected:
        refuse_autocommit(given)
    return given
