"""Deletes old rows of the history and old burials, a few at a time, beside polls."""

import logging
import threading
from functools import partial
from math import inf

from duequeue.drive.actions import Flow
from duequeue.drive.retrying import retrying
from duequeue.errors import StoreError
from duequeue.instants import MILLISECOND
from duequeue.port.store import AgeLimits, Store
from duequeue.retention import Retention
from duequeue.retry_policy import RetryPolicy

# A queue looks for old rows this often, in milliseconds of its clock.
INTERVAL = 10 * 60 * 1000
# It deletes up to this many rows of each kind before a poll goes on.
CHUNK = 1000

logger = logging.getLogger("duequeue")


class Cleaning:
    """What a queue deletes by age, and when it does so next; threads may share it."""

    def __init__(self, retention: Retention) -> None:
        self._history = retention.history
        self._buried = retention.buried
        self._lock = threading.Lock()
        self._last_at = -inf

    def take_turn(self, now: int) -> bool:
        """Return whether it is time to delete; then no other caller gets True for a while."""
        with self._lock:
            if self._last_at <= now < self._last_at + INTERVAL:
                return False
            self._last_at = now
            return True

    def go_on_soon(self) -> None:
        """Let the next poll delete more, because some rows are left."""
        with self._lock:
            self._last_at = -inf

    def limits(self, now: int) -> AgeLimits:
        """Return the instants before which everything is too old."""
        return AgeLimits(
            None if self._history is None else now - self._history // MILLISECOND,
            None if self._buried is None else now - self._buried // MILLISECOND,
        )

    def run(self, name: str, store: Store, now: int) -> Flow[None]:
        """Delete some of the old rows, if it is time; a failure must not fail the poll."""
        if not self.take_turn(now):
            return
        delete = partial(store.delete_old, self.limits(now), CHUNK)
        try:
            if (yield from retrying(RetryPolicy.never(), delete, consumes=True)):
                self.go_on_soon()
        except StoreError as error:
            logger.warning("queue %r: could not delete old rows: %s", name, error)
