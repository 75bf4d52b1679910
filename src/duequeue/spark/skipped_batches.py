"""What becomes of messages that a sink did not read, though Spark has committed their batch.

Many sinks skip a batch whose number they know already, without running its plan. That is right if
they have written this batch, and a loss if another checkpoint has written one of the same number.
"""

from functools import partial

from duequeue.bulk.port import COLUMNS, ID, KEY, BatchId
from duequeue.errors import DueQueueError
from duequeue.port.store import Lease, Release
from duequeue.spark.open_bulk import OpenBulk

PAGE_ROWS = 10_000

_DELIVER_AT = COLUMNS.index("deliver_at")


def check_read(bulk: OpenBulk, through: BatchId, queue: str) -> None:
    """Raise if a slice up to this batch was not read to its end; its messages are due again."""
    unread = bulk.run(partial(bulk.store.unread, through))
    released = sum(_release(bulk, batch, number) for batch, number in unread)
    if released:
        raise DueQueueError(
            f"the sink has skipped {released} messages of the queue {queue!r}, which are due again "
            "instead of acked: a sink skips a batch if it has one of this number from another "
            "checkpoint, so give this stream its own output (path or txnAppId) and checkpoint; "
            "and a function of foreachBatch must read its whole batch"
        )


def _release(bulk: OpenBulk, batch: BatchId, slice_number: int) -> int:
    """Release the messages of a slice that are still leased, and count them."""
    rows = len(bulk.run(partial(bulk.store.slice_lengths, batch, slice_number, PAGE_ROWS)))
    released = 0
    for first in range(0, rows, PAGE_ROWS):
        page = range(first, first + PAGE_ROWS)
        read = partial(bulk.store.read_slice, batch, slice_number, page, with_payload=False)
        now, found = bulk.now(), bulk.run(read)
        releases = [Release(Lease(row[ID], 0, now, row[KEY]), row[_DELIVER_AT]) for row in found]
        if releases:
            released += len(bulk.run(partial(bulk.store.release, batch, releases)))
    # An ack that is interrupted may shift the places of a slice, so it is not looked at again.
    bulk.run(partial(bulk.store.note_read, batch, slice_number))
    return released
