# Made from given_async.py: change that file, and run `make made`.
"""The blocking connections that `within` takes on MariaDB and MySQL."""

from functools import partial
from typing import Any

from duequeue.drive.steps import drive
from duequeue.errors import StoreError
from duequeue.stores.sql.connections.home import Home
from duequeue.stores.sql.mariadb.accepted import (
    accepted,
    errors_of,
    explained,
    facts_of,
    is_open,
    send_each,
)
from duequeue.stores.sql.mariadb.conversation import Conversation, command_name
from duequeue.stores.sql.mariadb.identity import (
    Identity,
    add_history_day,
    current_database,
    identify,
    recall,
    remember,
)
from duequeue.stores.sql.mariadb.settings import HostAddress


class GivenMariadb:
    """A caller's connection; see `connections.borrowed`."""

    def __init__(self, given: object, home: Home, address: HostAddress) -> None:
        self._connection = accepted(given)
        self._home = home
        self._address = address

    @property
    def closed(self) -> bool:
        """Whether it is closed."""
        return not is_open(self._connection)

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """The errors of the driver."""
        return errors_of(self._connection)

    def perform(self, command: Any) -> object:
        """Carry out one command."""
        if command_name(command) == "add_history_day":
            # On a connection of the queue's own, since this would commit on a caller's.
            self._home.run(partial(add_history_day, command.parameters["day"]))
            return []
        talk = Conversation(facts_of(self._connection), borrowed=True)
        return drive(talk.perform(command), partial(send_each, self._connection))

    def recall(self) -> Identity | None:
        """Return what the connection leads to, if that is known and it uses the same database."""
        known = recall(self._connection)
        if known is None:
            return None
        database = drive(current_database(), self.perform)
        return known if known.database == database else None

    def look(self) -> Identity:
        """Ask the connection what it leads to, and keep that as long as the connection exists."""
        return remember(self._connection, drive(identify(), self.perform))

    def translate(self, error: Any) -> StoreError:
        """Return the DueQueue error for an error in a caller's transaction."""
        return explained(error, self._address)
