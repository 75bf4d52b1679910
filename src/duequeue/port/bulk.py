"""The port for whole batches: what a connector such as Spark's asks of a database.

As in `store.py`, an operation is a generator of commands, run by a session. Batches are Arrow's;
their columns are `key`, `payload`, `due_at`, `headers` and `replace`, sorted by key, each key once.
"""

import os
from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from duequeue.port.store import Burial, Counts, Release, Session, Steps

if TYPE_CHECKING:
    from pyarrow import RecordBatch

# What is read of a message, in this order; stream batches add its id. In a snapshot `deliver_at`
# may be None, where it is the same as `due_at`, and so may `attempt`, where it is 0.
COLUMNS = (
    "key",
    "payload",
    "headers",
    "due_at",
    "deliver_at",
    "attempt",
    "created_at",
    "updated_at",
    "leased_until",
)
PAYLOAD = COLUMNS.index("payload")
ID = len(COLUMNS)

# The payloads of a page together, about: they pass through the memory of Python and Java.
PAGE_BYTES = 16 * 1024 * 1024

MessageRow: TypeAlias = tuple[Any, ...]
MessageColumns: TypeAlias = Sequence[Sequence[Any]]


class OfferCounts(NamedTuple):
    """What became of the messages of a bulk offer."""

    created: int = 0
    updated: int = 0
    ignored: int = 0

    def plus(self, other: "OfferCounts") -> "OfferCounts":
        """Return both together."""
        return OfferCounts(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


class StageId(NamedTuple):
    """Whose staged rows: one writer's, of one of its batches."""

    writer: int
    batch: int


class BatchId(NamedTuple):
    """A micro-batch: one consumer's, counted from 1."""

    consumer: str
    sequence: int


class StreamBatch(NamedTuple):
    """A leased micro-batch, and into how many slices it is cut."""

    sequence: int
    slices: int
    rows: int


class Reach(NamedTuple):
    """How far a lease may reach: due until, and not above this id."""

    due_until: int
    last_id: int


# Nobody comes back to a batch, or for a note, after so many milliseconds.
STALE_AFTER = 7 * 24 * 3_600_000


class SnapshotPart(NamedTuple):
    """A range of the table to read, in the snapshot of that name if the store has such."""

    number: int
    first: int
    last: int
    snapshot: str | None


def default_parts() -> int:
    """Cut into as many parts as there are processors here, unless told otherwise."""
    return os.cpu_count() or 1


class BulkStore(Protocol):
    """Bulk operations on the messages of one kind."""

    @property
    def kind_id(self) -> int:
        """The small number that stands for the kind."""

    def ingest(
        self, rows: "RecordBatch", now: int, *, expect_new: bool
    ) -> Steps[tuple[OfferCounts, bool]]:
        """Offer a batch in one transaction; tell also whether all of it was new, as expected."""

    def stage(self, rows: "RecordBatch", stage: StageId, part: int) -> Steps[None]:
        """Put rows aside until their batch commits."""

    def discard(self, stage: StageId, parts: Sequence[int]) -> Steps[None]:
        """Throw staged parts away."""

    def merge(
        self, app: str, stage: StageId, parts: Mapping[int, int], now: int
    ) -> Steps[OfferCounts | None]:
        """Offer what is staged, once; None if that batch of that app was the last to be merged.

        An error if it has merged a later one: then this is another stream under the same name.

        `parts` tells how many rows each part has; any other part is the rest of a failed try. Of
        the same key in several parts, the one with the higher number counts as offered later.
        """

    def record(self, app: str, counts: OfferCounts, now: int) -> Steps[None]:
        """Leave a note of what became of a write."""

    def take_record(self, app: str) -> Steps[OfferCounts | None]:
        """Take that note away."""

    def notify(self, due_at: int) -> Steps[None]:
        """Tell the waiting, in every process, of messages committed for `due_at`."""

    def last_id(self) -> Steps[int]:
        """Return the highest id of any message so far."""

    def counts(self, now: int) -> Steps[Counts]:
        """Count messages by state."""

    def lease(
        self, batch: BatchId, limit: int, slice_size: int, now: int, until: int, reach: Reach
    ) -> Steps[StreamBatch | None]:
        """Lease a micro-batch, or find it again if it is leased already; None if nothing is due."""

    def extend(self, consumer: str, until: int) -> Steps[int]:
        """Move the end of all leases of a consumer that are still held, and count them."""

    def ack(self, through: BatchId, now: int) -> Steps[int]:
        """Delete the messages of a consumer's batches up to this one, and count them."""

    def first_batch(self, consumer: str) -> Steps[StreamBatch | None]:
        """Return the first of a consumer's batches that are not acked."""

    def forget_stale(self, before: int) -> Steps[None]:
        """Forget batches whose leases ended before an instant: nobody will ask for them."""

    def slice_lengths(self, batch: BatchId, slice_number: int, page_rows: int) -> Steps[list[int]]:
        """Return how long each payload of a slice is, in due order.

        Or zeros, if no page of so many rows can have more than `PAGE_BYTES`.
        """

    def read_slice(
        self, batch: BatchId, slice_number: int, page: range, *, with_payload: bool
    ) -> Steps[list[MessageRow]]:
        """Read those of a page of a slice that the batch still holds, in due order."""

    def release(self, batch: BatchId, releases: Sequence[Release]) -> Steps[set[int]]:
        """Give messages of a batch back; the tokens of these leases are filled in."""

    def bury(self, batch: BatchId, burials: Sequence[Burial], now: int) -> Steps[set[int]]:
        """Park messages of a batch, likewise."""


class Snapshots(Protocol):
    """Reads a whole kind of message in parts, changing nothing."""

    def plan(self, parts: int | None, seconds: float) -> list[SnapshotPart]:
        """Cut the table into parts; what they share is kept for at most that long."""

    def read(
        self, part: SnapshotPart, page: int, *, with_payload: bool
    ) -> Generator[MessageColumns, None, None]:
        """Read one part, in pages of at most so many rows, or of about `PAGE_BYTES`."""


class BulkBackend(Protocol):
    """A database that takes and gives whole batches."""

    def bulk_session(self) -> Session:
        """Return a session for bulk operations; it connects when it is first used."""

    def open_bulk(self, kind: str, *, migrate: bool, history: bool) -> Steps[BulkStore]:
        """Get the store of one kind of message ready."""

    def snapshots(self, kind_id: int) -> Snapshots:
        """Return the way to read that kind."""
