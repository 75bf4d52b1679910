"""The operations of a store, each of which is one call to a server; see `port.remote`."""

from collections.abc import Callable
from typing import Any, NamedTuple, cast

from duequeue.port.burial_table import BurialTable
from duequeue.port.cron_table import CronTable
from duequeue.port.history_table import HistoryTable
from duequeue.port.remote import BURIALS, CRON, HISTORY, STORE, FoundMessage, Operation
from duequeue.port.store import NoUpkeep, Steps, Store


class RemoteQueue(NamedTuple):
    """What a client has opened a queue with; the defaults are for the whole database."""

    queue: str = ""
    type_name: str = ""
    sweep_interval: int = 0
    history: bool = False
    sender: str = ""


class RemoteCall(NamedTuple):
    """The only command: call an operation of the server."""

    opened: RemoteQueue
    name: str
    operation: Operation
    arguments: tuple[Any, ...]


class RemoteOperations:
    """Operations of a protocol under the names of its methods."""

    def __init__(self, opened: RemoteQueue, operations: dict[str, Operation], prefix: str) -> None:
        self._opened = opened
        self._operations = operations
        self._prefix = prefix

    def __getattr__(self, name: str) -> Callable[..., Steps[Any]]:
        operation = self._operations.get(self._prefix + name)
        if operation is None:
            raise AttributeError(name)

        def steps(*given: Any, **named: Any) -> Steps[Any]:
            arguments = operation.positional(given, named)
            return (yield RemoteCall(self._opened, self._prefix + name, operation, arguments))

        setattr(self, name, steps)
        return steps


class HttpStore(RemoteOperations, NoUpkeep):
    """The messages of one kind behind a server; the server announces what it stores."""

    def __init__(self, opened: RemoteQueue) -> None:
        super().__init__(opened, STORE, "")
        self.burials = cast("BurialTable", RemoteOperations(opened, BURIALS, "burials."))
        self.cron = cast("CronTable", RemoteOperations(opened, CRON, "cron."))

    def read(self, key: str) -> Steps[Any]:
        """Return the live message of a key, else its newest burial."""
        call = RemoteCall(self._opened, "read", STORE["read"], (key,))
        found: FoundMessage = yield call
        return found.message


def http_store(opened: RemoteQueue) -> Store:
    """Return the store of a queue."""
    return cast("Store", HttpStore(opened))


def http_history() -> HistoryTable:
    """Return the history of the whole database."""
    return cast("HistoryTable", RemoteOperations(RemoteQueue(), HISTORY, "history."))
