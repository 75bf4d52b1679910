"""The calls whose statements fail in turn, on queues and on their sessions for whole batches."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property, partial
from typing import Any, TypeAlias

import pyarrow as pa

from duequeue import ManualClock, Message
from duequeue.bulk import bulk_backend_for
from duequeue.bulk.port import STALE_AFTER, BatchId, BulkStore, OfferCounts, Reach, StageId
from duequeue.contract.faces import QueueFace
from duequeue.contract.phrases import DAY, HOUR, MINUTE, claim
from duequeue.instants import to_millis
from duequeue.port.store import Burial, Lease, Session
from duequeue.spark.options import parse

STAGE = StageId(writer=7, batch=3)
HOLD_MILLIS = 60_000


@dataclass
class Ground:
    """A queue, and what else a call needs."""

    url: str
    queue: QueueFace
    clock: ManualClock
    history: bool
    _session: Session | None = None

    @property
    def now(self) -> int:
        return to_millis(self.clock.now())

    def in_bulk(self, name: str, *arguments: Any, **options: Any) -> Callable[[], Any]:
        """Return a bulk operation, which is tried once."""
        session, store = self._bulk
        return lambda: session.run(partial(getattr(store, name), *arguments, **options))

    def close(self) -> None:
        if self._session is not None:
            self._session.close()

    @cached_property
    def _bulk(self) -> tuple[Session, BulkStore]:
        backend, options = bulk_backend_for(self.url), parse({"url": self.url, "queue": "orders"})
        session = self._session = backend.bulk_session()
        opening = partial(backend.open_bulk, options.kind, migrate=False, history=self.history)
        return session, session.run(opening)


# Returns a call that may fail again and again until it succeeds.
Scene: TypeAlias = Callable[[Ground], Callable[[], object]]


def offered(queue: QueueFace, number: int = 3) -> None:
    queue.offer_batch([Message(f"old-{n}", n) for n in range(number)])


def offer(at: Ground) -> Callable[[], object]:
    offered(at.queue)
    return lambda: at.queue.offer("old-1", "changed", DAY)


def offer_batch(at: Ground) -> Callable[[], object]:
    offered(at.queue)
    batch: list[Message[Any]] = [Message(f"old-{n % 5}", n + 10, DAY) for n in range(12)]
    return lambda: at.queue.offer_batch(batch)


def offer_many(at: Ground) -> Callable[[], object]:
    """A batch of which MariaDB is first sent only the INSERT."""
    offered(at.queue)
    batch: list[Message[Any]] = [Message(f"old-{n}", n + 10, DAY) for n in range(300)]
    return lambda: at.queue.offer_batch(batch)


def ack(at: Ground) -> Callable[[], object]:
    offered(at.queue)
    return claim(at.queue).ack


def ack_many(at: Ground) -> Callable[[], object]:
    offered(at.queue)
    held = at.queue.try_poll_many(3)
    return lambda: at.queue.ack_many(held)


def answer(at: Ground) -> Callable[[], object]:
    offered(at.queue)
    held = claim(at.queue)
    return lambda: held.ack(response="done")


def bury(at: Ground) -> Callable[[], object]:
    offered(at.queue)
    held = claim(at.queue)
    return lambda: held.bury("enough")


def release(at: Ground) -> Callable[[], object]:
    offered(at.queue)
    held = claim(at.queue)
    return lambda: held.release(DAY)


def drop(at: Ground) -> Callable[[], object]:
    offered(at.queue)
    return lambda: at.queue.drop("old-1")


def drop_all(at: Ground) -> Callable[[], object]:
    offered(at.queue)
    return lambda: at.queue.drop_all(at.queue.name)


def expire(at: Ground) -> Callable[[], object]:
    at.queue.offer("short", 1, expires=timedelta(minutes=1))
    at.clock.advance(HOUR)
    return lambda: poll_later(at)


def poll_again(at: Ground) -> Callable[[], object]:
    """A poll of a key whose earlier message has a response, which the poll deletes."""
    offered(at.queue, 1)
    claim(at.queue).ack(response="earlier")
    offered(at.queue, 1)
    return lambda: poll_later(at)


def poll_later(at: Ground) -> object:
    at.clock.advance(10 * MINUTE)  # so that the lease of a poll that failed has ended
    return at.queue.try_poll()


def revive(at: Ground) -> Callable[[], object]:
    offered(at.queue)
    claim(at.queue).bury("enough")
    return lambda: at.queue.revive("old-0")


def revive_all(at: Ground) -> Callable[[], object]:
    offered(at.queue)
    for held in at.queue.try_poll_many(3):
        held.bury("enough")
    return at.queue.revive_all


def reschedule(at: Ground) -> Callable[[], object]:
    offered(at.queue)
    return lambda: at.queue.reschedule("old-1", DAY)


# What Spark does with whole batches, for which it has a session of its own.


def rows_of(*keys: str, payload: bytes = b"7") -> pa.RecordBatch:
    many = len(keys)
    return pa.record_batch(
        {
            "key": pa.array(keys, pa.string()),
            "payload": pa.array([payload] * many, pa.binary()),
            "due_at": pa.array([0] * many, pa.int64()),
            "headers": pa.nulls(many, pa.string()),
            "replace": pa.array([True] * many, pa.bool_()),
        }
    )


def append(at: Ground) -> Callable[[], object]:
    return at.in_bulk("ingest", rows_of("a", "b"), at.now, expect_new=True)


def append_what_is_known(at: Ground) -> Callable[[], object]:
    """A batch that is merged, because one of its keys is taken."""
    offered(at.queue)
    claim(at.queue)
    return at.in_bulk("ingest", rows_of("a", "old-0", "old-1"), at.now, expect_new=True)


def stage(at: Ground) -> Callable[[], object]:
    return at.in_bulk("stage", rows_of("a", "b"), STAGE, 1)


def merge(at: Ground) -> Callable[[], object]:
    offered(at.queue)
    claim(at.queue)
    at.in_bulk("stage", rows_of("a", "old-0"), STAGE, 1)()
    at.in_bulk("stage", rows_of("b", "old-0", payload=b"8"), STAGE, 2)()
    return at.in_bulk("merge", "app", STAGE, {1: 2, 2: 2}, at.now)


def record(at: Ground) -> Callable[[], object]:
    at.in_bulk("record", "app", OfferCounts(1), at.now)()
    return at.in_bulk("record", "other", OfferCounts(2), at.now + STALE_AFTER + 1)


def take_record(at: Ground) -> Callable[[], object]:
    at.in_bulk("record", "app", OfferCounts(1), at.now)()
    return at.in_bulk("take_record", "app")


def lease_batch(at: Ground) -> Callable[[], object]:
    """A batch of two slices, one message of which has an earlier response."""
    offered(at.queue)
    claim(at.queue).ack(response="earlier")
    offered(at.queue)
    return leasing(at)


def leasing(at: Ground, sequence: int = 1) -> Callable[[], object]:
    reach = Reach(at.now, 2**62)
    return at.in_bulk("lease", BatchId("me", sequence), 2, 1, at.now, at.now + HOLD_MILLIS, reach)


def extend_batches(at: Ground) -> Callable[[], object]:
    leased(at)
    return at.in_bulk("extend", "me", at.now + 2 * HOLD_MILLIS)


def ack_batches(at: Ground) -> Callable[[], object]:
    leased(at)
    return at.in_bulk("ack", BatchId("me", 2), at.now)


def bury_in_batch(at: Ground) -> Callable[[], object]:
    leased(at)
    of = at.in_bulk("read_slice", BatchId("me", 1), 0, range(1), with_payload=False)
    ((*row, number),) = of()
    burial = Burial(Lease(number, 0, at.now, row[0]), 1, "enough")
    return at.in_bulk("bury", BatchId("me", 1), [burial], at.now)


def leased(at: Ground) -> None:
    offered(at.queue)
    leasing(at, 1)()
    leasing(at, 2)()


CALLS: tuple[Scene, ...] = (
    *(offer, offer_batch, offer_many, ack, ack_many, answer, bury, release),
    *(drop, drop_all, expire, poll_again, revive, revive_all, reschedule),
)
BULK_CALLS: tuple[Scene, ...] = (
    *(append, append_what_is_known, stage, merge, record, take_record),
    *(lease_batch, extend_batches, ack_batches, bury_in_batch),
)
