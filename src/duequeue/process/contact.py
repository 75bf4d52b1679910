"""Notes whether the calls of this process reach a store, and logs its outages.

All queues of a process that use the same tables share one `StoreContact`. So an outage logs one
line when the store is lost, one a minute while it lasts, and one when it is back, however many
calls, consumers and connections fail meanwhile.
"""

import logging
import socket
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from threading import Lock
from time import monotonic

from duequeue.instants import words_for
from duequeue.process.shared import Shared

logger = logging.getLogger("duequeue")

# A store that answers again within this time was busy, and not lost.
SILENT_SECONDS = 1.0
LOG_EVERY_SECONDS = 60.0


class StoreContact:
    """When a store was last reached, and since when calls fail."""

    def __init__(self, address: str = "the store", clock: Callable[[], float] = monotonic) -> None:
        self._address = address
        self._clock = clock
        self._lock = Lock()
        self._logged_at: float | None = None
        self.failing_since: float | None = None
        self.reached_at = clock()
        self.failures = 0

    @property
    def is_lost(self) -> bool:
        """Whether the log says that the store is lost."""
        return self._logged_at is not None

    def failed(self, error: BaseException) -> None:
        """Note that a call failed because the store is unavailable."""
        self.failures += 1
        # Another thread, or the call that a signal interrupted, may hold the lock. It logs enough.
        if self._lock.acquire(blocking=False):
            try:
                self._note(self._clock(), error)
            finally:
                self._lock.release()

    def regained(self) -> None:
        """Note that a call succeeded after others had failed."""
        if self._lock.acquire(blocking=False):
            try:
                since, was_lost = self.failing_since, self.is_lost
                self.failing_since = self._logged_at = None
                if was_lost and since is not None:
                    logger.warning(
                        "%s is available again, after %s", self._address, self._span(since)
                    )
            finally:
                self._lock.release()

    def _note(self, now: float, error: BaseException) -> None:
        if self.failing_since is None:
            self.failing_since = now
        if self._logged_at is None and now - self.failing_since >= SILENT_SECONDS:
            self._logged_at = now
            logger.warning("the store is unavailable, and calls wait for it: %s", one_line(error))
        elif self._logged_at is not None and now - self._logged_at >= LOG_EVERY_SECONDS:
            self._logged_at = now
            span = self._span(self.failing_since)
            logger.error("the store has been unavailable for %s: %s", span, one_line(error))

    def _span(self, since: float) -> str:
        return words_for(timedelta(seconds=self._clock() - since))


_contacts: Shared[StoreContact] = Shared()


def contact_with(place: str, address: str) -> StoreContact:
    """Return the contact of this process with the tables at a place."""
    return _contacts.get(place, partial(StoreContact, address))


def one_line(error: BaseException) -> str:
    """Return the message of an error in one line; a driver's message often has several."""
    return " ".join(str(error).split())


def end_connection(connection: socket.socket) -> None:
    """End a connection, so that a read in another thread fails at once; raise OSError if it cannot.

    The `shutdown` of a socket with TLS first makes it a plain one. A read in another thread would
    then return encrypted bytes as if they were the answer.
    """
    socket.socket.shutdown(connection, socket.SHUT_RDWR)
