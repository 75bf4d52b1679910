"""Bulk operations on Redis, without Spark: what is offered, staged, leased, acked and read."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from duequeue import Outcome, Queue, StoreError
from duequeue.bulk.port import (
    ID,
    KEY,
    BatchId,
    Conditions,
    OfferCounts,
    Reach,
    SnapshotQuery,
    StageId,
    StreamBatch,
    StreamCounts,
    token_of,
)
from duequeue.port.store import Burial, Lease, Release
from duequeue.spark.open_bulk import OpenBulk
from duequeue.spark.options import parse
from duequeue.stores.redis.commands import Script
from tests.fixtures.redis_server import RedisServer

STAGE = StageId(writer=7, batch=3)
ALL = 2**62
MANY = 2_500


@pytest.fixture
def bulk(redis_url: str) -> Iterator[OpenBulk]:
    with OpenBulk(parse({"url": redis_url, "queue": "orders"})) as opened:
        yield opened


@pytest.fixture
def queue(redis_url: str, bulk: OpenBulk) -> Iterator[Queue[Any]]:
    with Queue.open(redis_url, "orders") as opened:
        yield opened


def batch_of(*keys: str, payload: bytes = b"1", replace: bool = True, due: int = 0) -> Any:
    """Messages as the store takes them."""
    many = len(keys)
    return pa.record_batch(
        {
            "key": pa.array(keys, pa.string()),
            "payload": pa.array([payload] * many, pa.binary()),
            "due_at": pa.array([due] * many, pa.int64()),
            "headers": pa.nulls(many, pa.string()),
            "replace": pa.array([replace] * many, pa.bool_()),
        }
    )


def many_keys(count: int = MANY) -> list[str]:
    return [f"{number:05}" for number in range(count)]


def ingest(bulk: OpenBulk, rows: Any, *, expect_new: bool = False) -> Any:
    return bulk.run(partial(bulk.store.ingest, rows, bulk.now(), expect_new=expect_new))


def stage(bulk: OpenBulk, rows: Any, part: int, stage: StageId = STAGE) -> None:
    bulk.run(partial(bulk.store.stage, rows, stage, part))


def merge(bulk: OpenBulk, parts: dict[int, int], stage: StageId = STAGE) -> OfferCounts | None:
    return bulk.run(partial(bulk.store.merge, "app", stage, parts, bulk.now()))


def lease(bulk: OpenBulk, sequence: int, limit: int = 100, reach: Reach | None = None) -> Any:
    now = bulk.now()
    batch, reach = BatchId("me", sequence), reach or Reach(now, ALL)
    return bulk.run(partial(bulk.store.lease, batch, limit, 10, now, now + 60_000, reach))


def read(bulk: OpenBulk, sequence: int, slice_number: int) -> list[Any]:
    batch = BatchId("me", sequence)
    lengths = bulk.run(partial(bulk.store.slice_lengths, batch, slice_number, 1000))
    page = range(len(lengths))
    return bulk.run(partial(bulk.store.read_slice, batch, slice_number, page, with_payload=True))


def ack(bulk: OpenBulk, sequence: int) -> int:
    return bulk.run(partial(bulk.store.ack, BatchId("me", sequence), bulk.now()))


def drained(queue: Queue[Any]) -> list[Any]:
    return queue.try_poll_many(10_000)


@pytest.mark.parametrize("expect_new", [True, False])
def test_an_offer_in_bulk_has_the_outcomes_of_single_ones(
    bulk: OpenBulk, queue: Queue[Any], expect_new: bool
) -> None:
    assert ingest(bulk, batch_of("a", "b"), expect_new=expect_new) == (OfferCounts(2), expect_new)
    again = ingest(bulk, batch_of("a", "b", "c"), expect_new=expect_new)
    assert again == (OfferCounts(created=1, ignored=2), False)
    changed = ingest(bulk, batch_of("a", "b", payload=b"2"))
    assert changed == (OfferCounts(updated=2), False)
    kept = ingest(bulk, batch_of("a", payload=b"3", replace=False))
    assert kept == (OfferCounts(ignored=1), False)
    assert {each.key: each.payload for each in drained(queue)} == {"a": 2, "b": 2, "c": 1}


def test_a_batch_may_have_more_rows_than_one_script_takes(
    bulk: OpenBulk, queue: Queue[Any]
) -> None:
    counts, _ = ingest(bulk, batch_of(*many_keys()))
    assert counts == OfferCounts(created=MANY)
    assert [each.key for each in drained(queue)] == many_keys()


def test_a_batch_is_merged_once(
    bulk: OpenBulk, queue: Queue[Any], redis_server: RedisServer
) -> None:
    for expected in (OfferCounts(created=3), None):
        stage(bulk, batch_of("a", "b"), 1)
        stage(bulk, batch_of("c"), 2)
        assert merge(bulk, {1: 2, 2: 1}) == expected
        queue.ack_many(drained(queue))
    assert queue.stats().total == 0
    assert bulk.run(partial(bulk.store.stream_counts, "app")) == StreamCounts(3, OfferCounts(3))


def test_a_batch_before_the_last_one_is_not_taken_for_a_replay(bulk: OpenBulk) -> None:
    stage(bulk, batch_of("a"), 1)
    assert merge(bulk, {1: 1}) == OfferCounts(created=1)
    stage(bulk, batch_of("b"), 1, StageId(7, 0))
    with pytest.raises(StoreError, match="'app' has already merged batch 3, and this is batch 0"):
        merge(bulk, {1: 1}, StageId(7, 0))


def test_what_is_not_staged_as_it_was_written_is_not_merged(bulk: OpenBulk) -> None:
    stage(bulk, batch_of("a"), 1)
    with pytest.raises(StoreError, match="no longer staged"):
        merge(bulk, {1: 2})


def test_what_another_try_staged_is_left_out_and_cleared_away(
    bulk: OpenBulk, queue: Queue[Any], redis_server: RedisServer, redis_url: str
) -> None:
    stage(bulk, batch_of("a"), 1)
    stage(bulk, batch_of("stray"), 9)
    stage(bulk, batch_of("older"), 9, StageId(7, 2))
    stage(bulk, batch_of("of another writer"), 1, StageId(8, 3))
    assert merge(bulk, {1: 1}) == OfferCounts(created=1)
    assert [each.key for each in drained(queue)] == ["a"]
    database = int(redis_url.rpartition("/")[2])
    left = {
        key.partition(b"}:")[2] for key in redis_server.ask("KEYS", "*:stage*", database=database)
    }
    assert left == {b"stage:8:3", b"stage:8:3:1", b"stage:8:3:1:keys", b"stages:8"}


def test_of_the_same_key_in_several_parts_the_later_one_wins(
    bulk: OpenBulk, queue: Queue[Any]
) -> None:
    for part in (5, 7, 6):
        stage(bulk, batch_of("a", payload=f"{part}".encode()), part)
    assert merge(bulk, {5: 1, 6: 1, 7: 1}) == OfferCounts(created=1, ignored=2)
    assert [each.payload for each in drained(queue)] == [7]


def test_of_those_that_replace_nothing_the_earlier_one_wins(
    bulk: OpenBulk, queue: Queue[Any]
) -> None:
    for part in (5, 6):
        stage(bulk, batch_of("a", payload=f"{part}".encode(), replace=False), part)
    assert merge(bulk, {5: 1, 6: 1}) == OfferCounts(created=1, ignored=1)
    assert [each.payload for each in drained(queue)] == [5]


@pytest.mark.parametrize("done", range(4, 14))
def test_a_merge_that_was_interrupted_goes_on_where_it_stopped(
    bulk: OpenBulk, queue: Queue[Any], done: int
) -> None:
    keys = many_keys()
    stage(bulk, batch_of(*keys), 1)
    stage(bulk, batch_of(*keys[:10], payload=b"2"), 2)
    parts = {1: MANY, 2: 10}
    steps = bulk.store.merge("app", STAGE, parts, bulk.now())
    interrupt(bulk, steps, done)
    assert merge(bulk, parts) in (OfferCounts(MANY, 0, 10), None)
    assert queue.stats().due == MANY
    assert queue.read("00000").payload == 2  # type: ignore[union-attr]
    counted = bulk.run(partial(bulk.store.stream_counts, "app"))
    assert counted == StreamCounts(3, OfferCounts(MANY, 0, 10))


@pytest.mark.parametrize("aborted", [False, True])
def test_a_merge_that_was_given_up_is_finished_when_its_batch_is_staged_again(
    bulk: OpenBulk, queue: Queue[Any], aborted: bool
) -> None:
    stage(bulk, batch_of(*many_keys()), 1)
    interrupt(bulk, bulk.store.merge("app", STAGE, {1: MANY}, bulk.now()), 4)
    assert queue.ack_many(drained(queue)) == 1000
    if aborted:  # as Spark does if the driver lives, but cannot reach the server
        bulk.run(partial(bulk.store.discard, STAGE, [1]))
    stage(bulk, batch_of(*many_keys()), 2)
    assert merge(bulk, {2: MANY}) == OfferCounts(created=MANY)
    assert [each.key for each in drained(queue)] == many_keys()[1000:]


@pytest.mark.parametrize("again", [{3: 2, 4: 1}, {5: 3}])
def test_rows_that_a_given_up_merge_had_chosen_do_not_count(
    bulk: OpenBulk, queue: Queue[Any], again: dict[int, int]
) -> None:
    rows = batch_of("a", "b", "c", replace=False)
    for part, many in {1: 2, 2: 1, **again}.items():
        stage(bulk, rows.slice(3 - many if many == 1 else 0, many), part)
    interrupt(bulk, bulk.store.merge("app", STAGE, {1: 2, 2: 1}, bulk.now()), 3)
    assert merge(bulk, again) == OfferCounts(created=3)
    assert [each.key for each in drained(queue)] == ["a", "b", "c"]


def interrupt(bulk: OpenBulk, steps: Any, done: int) -> None:
    """Run some scripts of an operation, and then no more of them."""
    reply: Any = None
    for _ in range(done):
        try:
            command = steps.send(reply)
        except StopIteration:
            return
        reply = bulk.run(partial(one, command))
    steps.close()


def one(command: Script) -> Any:
    return (yield command)


def test_staged_rows_whose_answer_was_lost_are_not_staged_twice(
    bulk: OpenBulk, queue: Queue[Any]
) -> None:
    for _ in range(2):
        stage(bulk, batch_of(*many_keys()), 1)
    assert merge(bulk, {1: MANY}) == OfferCounts(created=MANY)


def test_counts_are_taken_once_or_forgotten(bulk: OpenBulk) -> None:
    week = 7 * 24 * 3_600_000
    bulk.run(partial(bulk.store.record, "first", OfferCounts(1), 0))
    bulk.run(partial(bulk.store.record, "second", OfferCounts(2), week))
    bulk.run(partial(bulk.store.record, "third", OfferCounts(3), week + 1))
    taken = [
        bulk.run(partial(bulk.store.take_record, app))
        for app in ("first", "second", "third", "third")
    ]
    assert taken == [None, OfferCounts(2), OfferCounts(3), None]


def test_a_micro_batch_is_leased_read_and_acked(bulk: OpenBulk, queue: Queue[Any]) -> None:
    ingest(bulk, batch_of(*many_keys(25)))
    assert lease(bulk, 1) == StreamBatch(1, 3, 25)
    assert lease(bulk, 1) == StreamBatch(1, 3, 25)  # found again
    assert lease(bulk, 2) is None
    rows = [row for number in range(3) for row in read(bulk, 1, number)]
    assert [row[KEY] for row in rows] == many_keys(25)
    assert {(row[1], row[5]) for row in rows} == {(b"1", 1)}
    assert queue.stats().leased == 25
    assert bulk.run(partial(bulk.store.extend, "me", bulk.now() + 90_000)) == 25
    assert bulk.run(partial(bulk.store.first_batch, "me")) == StreamBatch(1, 3, 25)
    assert ack(bulk, 1) == 25
    assert ack(bulk, 1) == 0
    assert queue.stats().total == 0
    assert bulk.run(partial(bulk.store.first_batch, "me")) is None


@pytest.mark.parametrize("done", range(1, 6))
def test_a_lease_that_was_interrupted_is_completed(
    bulk: OpenBulk, queue: Queue[Any], done: int
) -> None:
    ingest(bulk, batch_of(*many_keys()))
    now = bulk.now()
    batch, reach = BatchId("me", 1), Reach(now, ALL)
    steps = bulk.store.lease(batch, 2_200, 1000, now, now + 60_000, reach)
    interrupt(bulk, steps, done)
    again = partial(bulk.store.lease, batch, 2_200, 1000, now, now + 60_000, reach)
    assert bulk.run(again) == StreamBatch(1, 3, 2_200)
    assert queue.stats().leased == 2_200
    assert bulk.run(partial(bulk.store.extend, "me", now + 90_000)) == 2_200
    assert ack(bulk, 1) == 2_200
    assert queue.stats().due == 300


def test_a_lease_reaches_no_further_than_it_is_told(bulk: OpenBulk) -> None:
    ingest(bulk, batch_of(*many_keys(5)))
    last_id = bulk.run(bulk.store.last_id)
    ingest(bulk, batch_of("earlier, but offered later", due=-1))
    ingest(bulk, batch_of("tomorrow", due=bulk.now() + 86_400_000))
    assert lease(bulk, 1, reach=Reach(ALL, last_id)) == StreamBatch(1, 1, 5)
    backlog = bulk.run(partial(bulk.store.backlog, bulk.now(), bulk.now(), 100))
    assert (backlog.messages, backlog.oldest_due_at) == (1, -1)
    assert lease(bulk, 2, reach=Reach(ALL, ALL)) == StreamBatch(2, 1, 2)


def test_messages_of_a_batch_are_released_and_buried(bulk: OpenBulk, queue: Queue[Any]) -> None:
    ingest(bulk, batch_of("a", "b", "c"))
    lease(bulk, 1)
    batch = BatchId("me", 1)
    first, second, _ = (Lease(row[ID], 0, 0, row[KEY]) for row in read(bulk, 1, 0))
    assert bulk.run(partial(bulk.store.release, batch, [Release(first, 0)])) == {first.id}
    buried = partial(bulk.store.bury, batch, [Burial(second, 1, "broken")], bulk.now())
    assert bulk.run(buried) == {second.id}
    assert [row[KEY] for row in read(bulk, 1, 0)] == ["c"]
    assert ack(bulk, 1) == 1
    assert [each.key for each in drained(queue)] == ["a"]
    assert [each.key for each in queue.buried(10)] == ["b"]


def test_an_ack_copies_the_times_of_the_handlers_into_the_history(redis_url: str) -> None:
    options = {"url": redis_url, "queue": "orders", "history": "true"}
    with OpenBulk(parse(options)) as bulk, Queue.open(redis_url, "orders", history=True) as queue:
        ingest(bulk, batch_of("a", "b"))
        lease(bulk, 1)
        ids = {row[KEY]: row[ID] for row in read(bulk, 1, 0)}
        bulk.run(partial(bulk.store.note_handled, BatchId("me", 1), {ids["a"]: 42}))
        assert ack(bulk, 1) == 2
        rows = {row.key: row for row in queue.history(10)}
        assert {row.outcome for row in rows.values()} == {Outcome.ACKED}
        assert rows["a"].handler_time is not None
        assert rows["b"].handler_time is None


def test_stale_batches_are_forgotten(bulk: OpenBulk) -> None:
    ingest(bulk, batch_of("a"))
    lease(bulk, 1)
    bulk.run(partial(bulk.store.forget_stale, bulk.now()))
    assert bulk.run(partial(bulk.store.first_batch, "me")) is not None
    bulk.run(partial(bulk.store.forget_stale, bulk.now() + 60_001))
    assert bulk.run(partial(bulk.store.first_batch, "me")) is None


def test_another_lease_of_a_message_is_left_alone(bulk: OpenBulk, queue: Queue[Any]) -> None:
    ingest(bulk, batch_of("a", "b"))
    lease(bulk, 1)
    queue.offer("a", 2)  # an update revokes the lease
    assert [row[KEY] for row in read(bulk, 1, 0)] == ["b"]
    assert ack(bulk, 1) == 1
    assert [each.payload for each in drained(queue)] == [2]


@pytest.mark.parametrize("parts", [None, 1, 3])
def test_everything_is_read_once(bulk: OpenBulk, queue: Queue[Any], parts: int | None) -> None:
    ingest(bulk, batch_of(*many_keys()))
    queue.try_poll_many(10)
    snapshots = bulk.snapshots()
    planned = bulk.plan(parts, 1.0)
    assert len(planned) == (parts or 1)
    pages = [page for part in planned for page in snapshots.read(part, 700, SnapshotQuery())]
    assert all(len(page[KEY]) <= 700 for page in pages)
    keys = [key for page in pages for key in page[KEY]]
    assert sorted(keys) == many_keys()
    assert sum(end is not None for page in pages for end in page[8]) == 10


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        (Conditions(keys=["00001", "00003", "nothing"]), ["00001", "00003"]),
        (Conditions(key_from="00002", key_before="00004"), ["00002", "00003"]),
        (Conditions(due_from=1), ["late"]),
        (Conditions(deliver_to=0, key_from="00004"), ["00004"]),
        (Conditions(leased_from=1), []),
    ],
)
def test_conditions_narrow_what_is_read(
    bulk: OpenBulk, conditions: Conditions, expected: list[str]
) -> None:
    ingest(bulk, batch_of(*many_keys(5)))
    ingest(bulk, batch_of("late", due=10))
    (part,) = bulk.plan(1, 1.0)
    query = SnapshotQuery(with_payload=False, conditions=conditions)
    pages = list(bulk.snapshots().read(part, 100, query))
    assert sorted(key for page in pages for key in page[KEY]) == expected
    assert all(payload is None for page in pages for payload in page[1])


def test_shards_are_refused(redis_url: str) -> None:
    with pytest.raises(ValueError, match="shards"):
        OpenBulk(parse({"url": f"{redis_url}?shards=4", "queue": "orders"}))


def test_the_token_of_a_batch_is_always_the_same() -> None:
    assert token_of(BatchId("me", 1)) == token_of(BatchId("me", 1)) != token_of(BatchId("me", 2))
