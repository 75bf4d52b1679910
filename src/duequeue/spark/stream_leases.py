"""The leases of a streaming query: the batch that it works on, and the one after it."""

from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from time import monotonic
from typing import Any, NamedTuple

from duequeue.bulk.port import STALE_AFTER, Backlog, BatchId, Reach, StreamBatch, default_parts
from duequeue.instants import LATEST
from duequeue.spark.heartbeat import Heartbeat
from duequeue.spark.open_bulk import OpenBulk
from duequeue.spark.options import Options
from duequeue.spark.skipped_batches import check_read
from duequeue.spark.stream_backlog import Admission, BacklogReport

# An idle query asks a hundred times a second, which is too often for the database.
LOOK_SECONDS = 0.1
# Smaller slices would take longer to start than to read.
SLICE_ROWS = 1000
NO_LIMIT = 2**63 - 1


class RunLimit(NamedTuple):
    """Which messages a run leases before it ends by itself, and about how many.

    The number is needed because messages that keep changing never leave its reach.
    """

    reach: Reach
    messages: int


def forget_stale(bulk: OpenBulk) -> None:
    """Forget batches that nobody will ask for any more."""
    bulk.run(partial(bulk.store.forget_stale, bulk.now() - STALE_AFTER))


class StreamLeases:
    """Leases, extends and acks the batches of one consumer, on the driver.

    One thread does the work that Spark need not wait for: it acks the last batch and leases the
    next one. If that fails, the next call raises the error. If a limit is given, the query ends
    there and leaves the other messages to a later run.
    """

    def __init__(
        self, bulk: OpenBulk, options: Options, consumer: str, limit: RunLimit | None
    ) -> None:
        self._bulk = bulk
        self._lease_millis = options.lease
        self._consumer = consumer
        self._queue = options.queue
        partitions = options.num_partitions or default_parts()
        self._slice_size = max(SLICE_ROWS, -(-options.max_messages_per_trigger // partitions))
        self._due_until = LATEST if options.include_future else None
        self._reach = limit and limit.reach
        # A run that ends by itself must not wait for messages that may never come.
        least = 1 if limit else options.min_messages_per_trigger
        self._admission = Admission(least, options.max_trigger_delay)
        self._report = BacklogReport(self._count, bulk.now)
        self._left = limit.messages if limit else NO_LIMIT
        self._acked = 0
        self._acking: Future[int] | None = None
        self._ahead: Future[StreamBatch | None] | None = None
        self._look_at = 0.0
        self._thread = ThreadPoolExecutor(1, "duequeue-stream")
        forget_stale(bulk)
        self._heartbeat = Heartbeat(self._extend, options.lease / 3000)

    def advance(self, done: int, limit: int) -> StreamBatch | None:
        """Ack all batches up to number `done`, and return the next one if messages are due.

        Raise if one of them was not read to its end, because then its sink has skipped it.

        If there is no next batch, Spark may not ask again, so this call waits for the acks.
        """
        self._ack(done)
        batch = self._next(done + 1, limit) if self._left > 0 else None
        self._left -= batch.rows if batch else 0
        self._report.refresh()
        if batch is None:
            self._wait_for_acks()
        elif batch.rows >= limit and self._left > 0:
            self._ahead = self._thread.submit(self._lease, done + 2, limit)
        return batch

    def figures(self) -> dict[str, Any]:
        """Return how many messages wait, and how late the first one is."""
        return self._report.figures

    def close(self) -> None:
        """Stop extending the leases, and close the connections."""
        self._heartbeat.stop()
        self._report.close()
        self._thread.shutdown(wait=False, cancel_futures=True)
        self._bulk.close()

    def _ack(self, done: int) -> None:
        if done > self._acked:
            self._wait_for_acks()
            check_read(self._bulk, BatchId(self._consumer, done), self._queue)
            self._acking = self._thread.submit(self._settle, done)
            self._acked = done

    def _wait_for_acks(self) -> None:
        acking, self._acking = self._acking, None
        if acking is not None:
            acking.result()

    def _next(self, sequence: int, limit: int) -> StreamBatch | None:
        ahead, self._ahead = self._ahead, None
        batch = ahead.result() if ahead is not None else None
        if batch is not None and batch.sequence == sequence:
            return batch
        if monotonic() < self._look_at:
            return None
        batch = self._thread.submit(self._lease, sequence, limit).result()
        self._look_at = 0.0 if batch else monotonic() + LOOK_SECONDS
        return batch

    def _lease(self, sequence: int, limit: int) -> StreamBatch | None:
        if not self._admission.admits(self._count) and not self._holds(sequence):
            return None
        now = self._bulk.now()
        lease = partial(
            self._bulk.store.lease,
            BatchId(self._consumer, sequence),
            limit,
            self._slice_size,
            now,
            now + self._lease_millis,
            self._reach or Reach(self._due_until or now, NO_LIMIT),
        )
        batch = self._bulk.run(lease)
        if batch is not None:
            self._admission.leased()
        return batch

    def _holds(self, sequence: int) -> bool:
        """Return whether a batch was leased already, as it is if an earlier run leased it ahead."""
        first = self._bulk.run(partial(self._bulk.store.first_batch, self._consumer))
        return first is not None and first.sequence == sequence

    def _count(self, most: int) -> Backlog:
        now = self._bulk.now()
        due_until = self._reach.due_until if self._reach else self._due_until or now
        return self._bulk.run(partial(self._bulk.store.backlog, due_until, now, most))

    def _settle(self, done: int) -> int:
        ack = partial(self._bulk.store.ack, BatchId(self._consumer, done), self._bulk.now())
        return self._bulk.run(ack)

    def _extend(self) -> None:
        until = self._bulk.now() + self._lease_millis
        self._bulk.run(partial(self._bulk.store.extend, self._consumer, until))
