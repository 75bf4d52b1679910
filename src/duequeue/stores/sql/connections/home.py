# Made from home_async.py: change that file, and run `make made`.
"""The database of a queue, as its own blocking sessions see it.

A queue is a number in the tables. In another database the same number may belong to another queue,
so a caller's connection is compared with the queue's own connections before it is used.
"""

from datetime import timedelta
from typing import TypeVar

from duequeue.drive.actions import performer
from duequeue.drive.retrying import retrying
from duequeue.drive.steps import drive
from duequeue.errors import WrongDatabase
from duequeue.port.store import Operation, Session
from duequeue.retry_policy import RetryPolicy

T = TypeVar("T")

# After a restart of the server, the first connections of the pool are lost.
RETRY = RetryPolicy(budget=timedelta(seconds=10))


class Home:
    """Where a queue is: the words for its kind of place, its address, and its identity."""

    def __init__(
        self, session: Session, words: str, address: object, identify: Operation[object]
    ) -> None:
        self._session = session
        self._words = words
        self._address = address
        self._identify = identify
        self.identity: object = None

    def look(self) -> None:
        """Ask again, because the server may have been replaced."""
        self.identity = self.run(self._identify)

    def run(self, operation: Operation[T]) -> T:
        """Run an operation on a connection of the queue's own."""
        return drive(retrying(RETRY, operation), performer(self._session))

    def require(self, identity: object) -> None:
        """Raise unless a connection leads here."""
        if identity != self.identity:
            raise WrongDatabase(
                f"connection leads to another {self._words} than the queue, which is in "
                f"{self._address}; nothing was stored: open the queue with the URL of the "
                "connection's database"
            )
