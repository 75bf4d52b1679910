"""The port for whole batches: what a connector such as Spark's asks of a database.

As in `store.py`, an operation is a generator of commands, which a session runs. A batch is an
Arrow record batch with the columns `key`, `payload`, `due_at`, `headers` and `replace`. It is
sorted by key and has each key once.
"""

import os
from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias
from uuid import UUID, uuid5

from duequeue.errors import StoreError
from duequeue.port.fencing import LEAST
from duequeue.port.store import Burial, Counts, Release, Session, Steps

if TYPE_CHECKING:
    from pyarrow import RecordBatch

# The columns that are read of a message, in this order; stream batches add its id. In a snapshot,
# `deliver_at` may be None if it equals `due_at`, and `attempt` may be None if it is 0.
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
KEY = COLUMNS.index("key")
PAYLOAD = COLUMNS.index("payload")
ID = len(COLUMNS)

# About how large the payloads of a page are together, since they pass through the memory of both
# Python and Java.
PAGE_BYTES = 16 * 1024 * 1024

_TOKENS = UUID("6d3a4c36-52f4-4a0e-9e3b-3f0d6f6f2b52")

MessageRow: TypeAlias = tuple[Any, ...]
MessageColumns: TypeAlias = Sequence[Sequence[Any]]


class OfferCounts(NamedTuple):
    """What became of the messages of a bulk offer."""

    created: int = 0
    updated: int = 0
    ignored: int = 0

    def plus(self, other: "OfferCounts") -> "OfferCounts":
        """Return the sums of both."""
        return OfferCounts(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


class StreamCounts(NamedTuple):
    """The number of the last batch that a stream has merged, and what became of all its rows."""

    batch: int
    offered: OfferCounts


class StageId(NamedTuple):
    """Identifies staged rows: the writer, and which of its batches they belong to."""

    writer: int
    batch: int


class Written(NamedTuple):
    """Which query wrote a batch, and a digest of its rows, by which a repetition is recognised.

    The query itself may come to other rows when it repeats a batch, for example with a new handler.
    """

    query: str | None = None
    digest: int | None = None

    def differs_from(self, other: "Written") -> bool:
        """Return whether another query wrote other rows, as far as both are known."""
        if None in self or None in other:
            return False
        return self.query != other.query and self.digest != other.digest


UNKNOWN = Written()


def name_is_taken(app: str, merged: str) -> StoreError:
    """Return the error for a stream whose name another one has used."""
    return StoreError(
        f"{app!r} has already merged {merged}, so another stream has used that name before; give "
        "this one its own name with txnAppId"
    )


class BatchId(NamedTuple):
    """Identifies a micro-batch: the consumer, and its sequence number, which starts at 1."""

    consumer: str
    sequence: int


def token_of(batch: BatchId) -> int:
    """Return a batch's fencing token, which is the same every time, even after a crash.

    Its last digit says that the batch is only fetched ahead, because nobody knows which of its
    messages a handler had when its lease ended. It forgets earlier losses; see `port/fencing.py`.
    """
    number = uuid5(_TOKENS, f"{batch.consumer}/{batch.sequence}").int >> 66
    return number - number % LEAST + LEAST


class StreamBatch(NamedTuple):
    """A leased micro-batch, and the number of slices it is cut into."""

    sequence: int
    slices: int
    rows: int


class Reach(NamedTuple):
    """Which messages a lease may include: those due by an instant, up to an id."""

    due_until: int
    last_id: int


class Backlog(NamedTuple):
    """How many messages wait, and the due time of the first, which is None if none waits."""

    messages: int
    oldest_due_at: int | None


# A batch or a record that is older than this, in milliseconds, will not be asked for again.
STALE_AFTER = 7 * 24 * 3_600_000


class SnapshotPart(NamedTuple):
    """A range of the table to read, in the named snapshot if the store has named ones."""

    number: int
    first: int
    last: int
    snapshot: str | None


class Conditions(NamedTuple):
    """Which messages of a snapshot to read; by default all. Bounds of instants are inclusive.

    The `leased_until` of a message without a lease is `instants.EARLIEST`.
    """

    keys: list[str] | None = None
    key_from: str | None = None
    key_before: str | None = None
    due_from: int | None = None
    due_to: int | None = None
    deliver_from: int | None = None
    deliver_to: int | None = None
    leased_from: int | None = None
    leased_to: int | None = None

    @property
    def are_narrow(self) -> bool:
        """Whether an index finds the messages, so that the table need not be read."""
        bounds = (self.keys, self.key_from, self.deliver_from, self.deliver_to)
        return any(bound is not None for bound in bounds)


class SnapshotQuery(NamedTuple):
    """What to read of each part of a snapshot, and whether to fail if the snapshot is lost."""

    with_payload: bool = True
    conditions: Conditions = Conditions()
    fail_on_loss: bool = True


def default_parts() -> int:
    """Return the number of processors of this machine, which is the default number of parts."""
    return os.cpu_count() or 1


class BulkStore(Protocol):
    """Bulk operations on the messages of one kind."""

    @property
    def kind_id(self) -> int:
        """The number that identifies the kind in the tables."""

    def ingest(
        self, rows: "RecordBatch", now: int, *, expect_new: bool
    ) -> Steps[tuple[OfferCounts, bool]]:
        """Offer a batch in one transaction; also return whether all of it was new, as expected."""

    def take_write_place(self, most: int) -> Steps[bool]:
        """Take one of the `most` places for writers of the queue, until the session is closed.

        Return False if none is free. A store that has one writer at a time returns True.
        """

    def stage(self, rows: "RecordBatch", stage: StageId, part: int) -> Steps[None]:
        """Put rows aside until their batch commits."""

    def discard(self, stage: StageId, parts: Sequence[int]) -> Steps[None]:
        """Delete staged parts."""

    def merge(
        self,
        app: str,
        stage: StageId,
        parts: Mapping[int, int],
        now: int,
        doubles: int = 0,
        written: Written = UNKNOWN,
    ) -> Steps[OfferCounts | None]:
        """Offer the staged rows; return None if this is the batch that the app merged last.

        Raise if the app has merged a later batch, or this one with other rows of another query,
        because then this is another stream under the same name.

        `parts` maps the number of each part to its number of rows; any other part was left over
        by a failed try. If several parts have the same key, the part with the higher number
        counts as offered later. `doubles` rows were not staged, because others have the same keys,
        and count as ignored.
        """

    def record(self, app: str, counts: OfferCounts, now: int) -> Steps[None]:
        """Record what became of a write."""

    def take_record(self, app: str) -> Steps[OfferCounts | None]:
        """Delete and return that record."""

    def stream_counts(self, app: str) -> Steps[StreamCounts | None]:
        """Return what became of the rows that an app has merged; None if it has merged none."""

    def notify(self, due_at: int) -> Steps[None]:
        """Notify the consumers that wait, in every process, of messages committed for `due_at`."""

    def last_id(self) -> Steps[int]:
        """Return the highest id of any message so far."""

    def counts(self, now: int) -> Steps[Counts]:
        """Count messages by state."""

    def backlog(self, due_until: int, now: int, most: int) -> Steps[Backlog]:
        """Count messages that are due by an instant and not leased, up to `most`."""

    def lease(
        self, batch: BatchId, limit: int, slice_size: int, now: int, until: int, reach: Reach
    ) -> Steps[StreamBatch | None]:
        """Lease a micro-batch, or find it again if it is leased already; None if nothing is due."""

    def extend(self, consumer: str, until: int) -> Steps[int]:
        """Move the end of all leases that a consumer still holds, and count them."""

    def ack(self, through: BatchId, now: int) -> Steps[int]:
        """Delete the messages of a consumer's batches up to this one, and count them."""

    def first_batch(self, consumer: str) -> Steps[StreamBatch | None]:
        """Return the first of a consumer's batches that are not acked."""

    def forget_stale(self, before: int) -> Steps[None]:
        """Forget batches whose leases ended before an instant, as nobody will ask for them."""

    def slice_lengths(self, batch: BatchId, slice_number: int, page_rows: int) -> Steps[list[int]]:
        """Return the length of each payload of a slice, in due order.

        Return zeros if no page of `page_rows` rows can exceed `PAGE_BYTES`.
        """

    def read_slice(
        self, batch: BatchId, slice_number: int, page: range, *, with_payload: bool
    ) -> Steps[list[MessageRow]]:
        """Read the messages in a page of a slice that the batch still holds, in due order."""

    def note_read(self, batch: BatchId, slice_number: int) -> Steps[None]:
        """Note that a reader has reached the end of a slice."""

    def unread(self, through: BatchId) -> Steps[list[tuple[BatchId, int]]]:
        """Return the slices of a consumer's batches up to this one that nobody has read whole."""

    def note_handled(self, batch: BatchId, handler_ms: Mapping[int, int]) -> Steps[None]:
        """Note how long handlers took, by the ids of their messages, which are all in one slice.

        An ack with history copies these times into the history.
        """

    def release(self, batch: BatchId, releases: Sequence[Release]) -> Steps[set[int]]:
        """Release messages of a batch; the store fills in the tokens of these leases."""

    def bury(self, batch: BatchId, burials: Sequence[Burial], now: int) -> Steps[set[int]]:
        """Bury messages of a batch; the store fills in the tokens of these leases."""


class Snapshots(Protocol):
    """Reads all messages of a kind in parts, without changing anything."""

    def measure(self) -> Steps[range]:
        """Return the range of ids or pages that the table has."""

    def plan(self, table: range, parts: int | None, seconds: float) -> list[SnapshotPart]:
        """Cut that range into parts; their snapshot waits that many seconds for a reader."""

    def read(
        self, part: SnapshotPart, page: int, query: SnapshotQuery
    ) -> Generator[MessageColumns, None, None]:
        """Read one part, in pages of at most `page` rows and about `PAGE_BYTES`."""


class BulkBackend(Protocol):
    """A database that takes and gives whole batches."""

    @property
    def is_pooled(self) -> bool:
        """Whether a pooler lends a connection for each transaction, so that none can be kept."""

    def bulk_session(self) -> Session:
        """Return a session for bulk operations; it connects when it is first used."""

    def open_bulk(self, kind: str, *, migrate: bool, history: bool) -> Steps[BulkStore]:
        """Open the store of one kind of message."""

    def snapshots(self, kind_id: int) -> Snapshots:
        """Return the reader of that kind."""
