"""A queue opened for batches, on the driver or on an executor."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from math import inf
from typing import TypeVar

from duequeue.bulk import bulk_backend_for
from duequeue.bulk.port import BulkStore, SnapshotPart, Snapshots
from duequeue.clock import SystemClock
from duequeue.drive.actions import performer
from duequeue.drive.retrying import retrying
from duequeue.drive.steps import drive
from duequeue.flows.context import NOTIFY_AHEAD
from duequeue.instants import to_millis
from duequeue.port.store import Steps
from duequeue.process.lifetime import Closing
from duequeue.retry_policy import RetryPolicy
from duequeue.spark.options import Options

T = TypeVar("T")

# A wrong address should be reported soon, while a later outage is worth a longer wait.
FIRST_CONTACT = RetryPolicy(budget=timedelta(seconds=5))


class OpenBulk(Closing):
    """Runs bulk operations, which block, and retries them while the database is unavailable."""

    def __init__(self, options: Options, first_contact: RetryPolicy | None = None) -> None:
        self._backend = bulk_backend_for(options.url)
        self._session = self._backend.bulk_session()
        self._perform = performer(self._session)
        self._clock = SystemClock()
        opening = partial(
            self._backend.open_bulk,
            options.kind,
            migrate=options.migrate,
            history=options.history,
        )
        try:
            self.store: BulkStore = self._run(opening, first_contact or RetryPolicy())
        except BaseException:
            self._session.close()
            raise

    def run(self, operation: Callable[[], Steps[T]]) -> T:
        """Run one operation in one transaction, and return its result."""
        return self._run(operation, RetryPolicy())

    def _run(self, operation: Callable[[], Steps[T]], policy: RetryPolicy) -> T:
        return drive(retrying(policy, operation, try_seconds=inf), self._perform)

    def now(self) -> int:
        """Return the present instant."""
        return to_millis(self._clock.now())

    def announce(self, due_at: int) -> None:
        """Wake the waiting consumers of every process if a message is due soon."""
        if due_at <= self.now() + NOTIFY_AHEAD:
            self.run(partial(self.store.notify, due_at))

    def plan(self, parts: int | None, seconds: float) -> list[SnapshotPart]:
        """Cut a snapshot into parts, and keep it for its readers if there are several."""
        snapshots = self.snapshots()
        return snapshots.plan(self.run(snapshots.measure), parts, seconds)

    def snapshots(self) -> Snapshots:
        """Return the reader of whole-queue snapshots."""
        return self._backend.snapshots(self.store.kind_id)

    def close(self) -> None:
        """Close the connections."""
        self._session.close()
