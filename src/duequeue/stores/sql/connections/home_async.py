"""The database of a queue, as its own awaiting sessions see it.

A queue is a number in the tables. In another database the same number may belong to another queue,
so a caller's connection is compared with the queue's own connections before it is used.
"""

from datetime import timedelta
from typing import TypeVar

from duequeue.drive.actions import performer_async
from duequeue.drive.retrying import retrying
from duequeue.drive.steps import drive_async
from duequeue.errors import WrongDatabase
from duequeue.port.store import AsyncSession, Operation
from duequeue.retry_policy import RetryPolicy

T = TypeVar("T")

# After a restart of the server, the first connections of the pool are lost.
RETRY = RetryPolicy(budget=timedelta(seconds=10))


class AsyncHome:
    """Where a queue is: the words for its kind of place, its address, and its identity."""

    def __init__(
        self, session: AsyncSession, words: str, address: object, identify: Operation[object]
    ) -> None:
        self._session = session
        self._words = words
        self._address = address
        self._identify = identify
        self.identity: object = None

    async def look(self) -> None:
        """Ask again, because the server may have been replaced."""
        self.identity = await self.run(self._identify)

    async def run(self, operation: Operation[T]) -> T:
        """Run an operation on a connection of the queue's own."""
        return await drive_async(retrying(RETRY, operation), performer_async(self._session))

    def require(self, identity: object) -> None:
        """Raise unless a connection leads here."""
        if identity != self.identity:
            raise WrongDatabase(
                f"connection leads to another {self._words} than the queue, which is in "
                f"{self._address}; nothing was stored: open the queue with the URL of the "
                "connection's database"
            )
