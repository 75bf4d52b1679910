"""Bulk operations, without Spark: what is appended, merged, staged, leased and acked."""

import ast
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, cast

import psycopg
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from duequeue import ManualClock, Message, Outcome, Queue, StoreError
from duequeue.bulk.port import (
    ID,
    KEY,
    BatchId,
    OfferCounts,
    Reach,
    SnapshotPart,
    SnapshotQuery,
    StageId,
    StreamBatch,
)
from duequeue.bulk.postgres import copy_in
from duequeue.bulk.postgres_snapshot_holder import MOST_SNAPSHOTS, Readers
from duequeue.bulk.sqlite import BulkSqliteSession, SqliteSnapshots
from duequeue.contract.logs import messages_of
from duequeue.drive.steps import drive
from duequeue.instants import to_millis
from duequeue.port.store import Burial, Lease, Steps
from duequeue.spark.open_bulk import OpenBulk
from duequeue.spark.options import parse
from duequeue.stores.sql.commands import Query
from tests.fixtures.postgres import PostgresServer
from tests.fixtures.stores import fresh_url
from tests.race.watching import until_one
from tests.spark.tables import LET_GO, ask, count, drained

STAGE = StageId(writer=7, batch=3)
ALL = 2**62


@pytest.fixture(params=["sqlite", "postgres", "mariadb"])
def url(request: pytest.FixtureRequest) -> str:
    return fresh_url(request.param, request)


@pytest.fixture
def bulk(url: str) -> Iterator[OpenBulk]:
    with OpenBulk(parse({"url": url, "queue": "orders"})) as opened:
        yield opened


@pytest.fixture
def queue(url: str, bulk: OpenBulk) -> Iterator[Queue[Any]]:
    with Queue.open(url, "orders") as opened:
        yield opened


def batch_of(*keys: str, payload: bytes = b"1", replace: bool = True) -> pa.RecordBatch:
    """Messages as the store takes them."""
    many = len(keys)
    return pa.record_batch(
        {
            "key": pa.array(keys, pa.string()),
            "payload": pa.array([payload] * many, pa.binary()),
            "due_at": pa.array([0] * many, pa.int64()),
            "headers": pa.nulls(many, pa.string()),
            "replace": pa.array([replace] * many, pa.bool_()),
        }
    )


def ingest(bulk: OpenBulk, rows: pa.RecordBatch, *, expect_new: bool) -> Any:
    return bulk.run(partial(bulk.store.ingest, rows, bulk.now(), expect_new=expect_new))


def merge(bulk: OpenBulk, parts: dict[int, int]) -> OfferCounts | None:
    return bulk.run(partial(bulk.store.merge, "app", STAGE, parts, bulk.now()))


def lease(bulk: OpenBulk, sequence: int, limit: int = 100, millis: int = 60_000) -> Any:
    now = bulk.now()
    batch, reach = BatchId("me", sequence), Reach(now, ALL)
    return bulk.run(partial(bulk.store.lease, batch, limit, 10, now, now + millis, reach))


@pytest.mark.parametrize("expect_new", [True, False])
def test_however_it_is_offered_the_outcome_is_the_same(
    bulk: OpenBulk, queue: Queue[Any], expect_new: bool
) -> None:
    assert ingest(bulk, batch_of("a", "b"), expect_new=expect_new) == (OfferCounts(2), expect_new)
    again = ingest(bulk, batch_of("a", "b", "c"), expect_new=expect_new)
    assert again == (OfferCounts(created=1, ignored=2), False)
    changed = ingest(bulk, batch_of("a", "b", payload=b"2"), expect_new=expect_new)
    assert changed == (OfferCounts(updated=2), False)
    kept = ingest(bulk, batch_of("a", payload=b"3", replace=False), expect_new=expect_new)
    assert kept == (OfferCounts(ignored=1), False)
    assert {each.key: each.payload for each in drained(queue)} == {"a": 2, "b": 2, "c": 1}


def test_equal_messages_are_left_alone_also_after_changed_ones(
    bulk: OpenBulk, queue: Queue[Any]
) -> None:
    ingest(bulk, batch_of("a", "b"), expect_new=True)
    changed = ingest(bulk, batch_of("a", "b", payload=b"2"), expect_new=False)
    assert changed == (OfferCounts(updated=2), False)
    held = drained(queue)
    for _ in range(2):
        equal = ingest(bulk, batch_of("a", "b", payload=b"2"), expect_new=False)
        assert equal == (OfferCounts(ignored=2), False)
    assert queue.ack_many(held) == 2


@pytest.mark.parametrize("history", ["true", "false"])
def test_what_is_offered_in_bulk_does_not_expire(url: str, queue: Queue[Any], history: str) -> None:
    due_at = datetime(1970, 1, 1, tzinfo=UTC)
    with OpenBulk(parse({"url": url, "queue": "orders", "history": history})) as bulk:
        for _ in range(2):  # the second time without a look at the stored messages first
            queue.offer("a", 1, due_at, expires=datetime(2100, 1, 1, tzinfo=UTC))
            merged = ingest(bulk, batch_of("a"), expect_new=False)
            assert merged == (OfferCounts(updated=1), False)
            found = queue.read("a")
            assert found is not None
            assert found.expires_at is None
        assert ingest(bulk, batch_of("a"), expect_new=False) == (OfferCounts(ignored=1), False)


def test_a_batch_is_merged_once(bulk: OpenBulk, queue: Queue[Any], url: str) -> None:
    for expected in (OfferCounts(created=3), None):
        bulk.run(partial(bulk.store.stage, batch_of("a", "b"), STAGE, 1))
        bulk.run(partial(bulk.store.stage, batch_of("c"), STAGE, 2))
        assert merge(bulk, {1: 2, 2: 1}) == expected
        queue.ack_many(drained(queue))
    assert queue.stats().total == 0
    assert count(url, "duequeue_stage") == 0


def test_a_batch_before_the_last_one_is_not_taken_for_a_replay(
    bulk: OpenBulk, queue: Queue[Any]
) -> None:
    bulk.run(partial(bulk.store.stage, batch_of("a"), STAGE, 1))
    assert merge(bulk, {1: 1}) == OfferCounts(created=1)
    anew = StageId(STAGE.writer, 0)
    bulk.run(partial(bulk.store.stage, batch_of("b"), anew, 1))
    with pytest.raises(
        StoreError, match=r"'app' has already merged batch 3, and this is batch 0.*txnApp"
    ):
        bulk.run(partial(bulk.store.merge, "app", anew, {1: 1}, bulk.now()))
    assert [each.key for each in drained(queue)] == ["a"]


def test_notes_that_nobody_has_taken_are_forgotten(bulk: OpenBulk, url: str) -> None:
    bulk.run(partial(bulk.store.stage, batch_of("a"), StageId(7, 0), 1))
    week = 7 * 24 * 3_600_000
    bulk.run(partial(bulk.store.merge, "stream", StageId(7, 0), {1: 1}, 0))
    bulk.run(partial(bulk.store.record, "first", OfferCounts(1), 0))
    bulk.run(partial(bulk.store.record, "second", OfferCounts(2), week))
    assert count(url, "duequeue_stream_commit") == 3
    bulk.run(partial(bulk.store.record, "third", OfferCounts(3), week + 1))
    assert bulk.run(partial(bulk.store.take_record, "first")) is None
    assert bulk.run(partial(bulk.store.take_record, "second")) == OfferCounts(2)
    assert bulk.run(partial(bulk.store.take_record, "third")) == OfferCounts(3)
    assert ask(url, "SELECT app FROM duequeue_stream_commit") == [("stream",)]


def test_what_another_try_staged_is_left_out(bulk: OpenBulk, queue: Queue[Any], url: str) -> None:
    bulk.run(partial(bulk.store.stage, batch_of("a"), STAGE, 1))
    bulk.run(partial(bulk.store.stage, batch_of("stray"), STAGE, 9))
    bulk.run(partial(bulk.store.stage, batch_of("older"), StageId(7, 2), 9))
    bulk.run(partial(bulk.store.stage, batch_of("others"), StageId(8, 3), 1))
    assert merge(bulk, {1: 1}) == OfferCounts(created=1)
    assert [each.key for each in drained(queue)] == ["a"]
    assert ask(url, 'SELECT "key" FROM duequeue_stage') == [("others",)]


def test_of_the_same_key_in_several_parts_the_later_one_wins(
    bulk: OpenBulk, queue: Queue[Any]
) -> None:
    for part in (5, 7, 6):
        offered = batch_of("a", payload=f"{part}".encode())
        bulk.run(partial(bulk.store.stage, offered, STAGE, part))
    assert merge(bulk, {5: 1, 6: 1, 7: 1}) == OfferCounts(created=1, ignored=2)
    assert [each.payload for each in drained(queue)] == [7]


def test_of_those_that_replace_nothing_the_earlier_one_wins(
    bulk: OpenBulk, queue: Queue[Any]
) -> None:
    for part in (6, 5, 7):
        offered = batch_of("a", payload=f"{part}".encode(), replace=False)
        bulk.run(partial(bulk.store.stage, offered, STAGE, part))
    assert merge(bulk, {5: 1, 6: 1, 7: 1}) == OfferCounts(created=1, ignored=2)
    assert [each.payload for each in drained(queue)] == [5]


def test_what_is_staged_while_a_batch_is_merged_is_left_out(ready_database: str) -> None:
    """On PostgreSQL; on SQLite nobody can write meanwhile."""
    options = parse({"url": ready_database, "queue": "orders"})
    with OpenBulk(options) as bulk, OpenBulk(options) as zombie:
        bulk.run(partial(bulk.store.stage, batch_of("a"), STAGE, 1))

        def merge_beside_a_zombie() -> Steps[OfferCounts | None]:
            steps, reply = bulk.store.merge("app", STAGE, {1: 1}, bulk.now()), None
            while True:
                try:
                    command = steps.send(reply)
                except StopIteration as done:
                    return cast("OfferCounts", done.value)
                if isinstance(command, Query) and command.name == "merge_staged":
                    late = batch_of("a", "b", payload=b"2")
                    zombie.run(partial(zombie.store.stage, late, STAGE, 9))
                reply = yield command

        assert bulk.run(merge_beside_a_zombie) == OfferCounts(created=1)
    with Queue.open(ready_database, "orders") as queue:
        assert [(each.key, each.payload) for each in drained(queue)] == [("a", 1)]


def test_what_is_not_staged_whole_is_not_merged(bulk: OpenBulk, queue: Queue[Any]) -> None:
    bulk.run(partial(bulk.store.stage, batch_of("a"), STAGE, 1))
    for parts in ({1: 2}, {1: 1, 2: 1}):
        with pytest.raises(StoreError, match="no longer staged as it was written"):
            merge(bulk, parts)
    assert queue.stats().total == 0
    assert merge(bulk, {1: 1}) == OfferCounts(created=1), "the number was not noted"


def test_what_is_replaced_leaves_a_row(url: str, queue: Queue[Any]) -> None:
    """Appended, merged or staged; what is new, equal or not to be replaced leaves none."""
    options = parse({"url": url, "queue": "orders", "history": "true"})
    with OpenBulk(options) as bulk:
        ingest(bulk, batch_of("a", "b", "c"), expect_new=True)
        assert len(drained(queue)) == 3
        changed = batch_of("a", "new", payload=b"2")
        assert ingest(bulk, changed, expect_new=True) == (OfferCounts(1, 1), False)
        ingest(bulk, batch_of("b", payload=b"2", replace=False), expect_new=False)
        bulk.run(partial(bulk.store.stage, batch_of("b", "d", payload=b"3"), STAGE, 1))
        bulk.run(partial(bulk.store.stage, batch_of("c", payload=b"3", replace=False), STAGE, 2))
        assert merge(bulk, {1: 2, 2: 1}) == OfferCounts(created=1, updated=1, ignored=1)
    kept = queue.history(9)
    assert {(each.key, each.attempts) for each in kept} == {("a", 1), ("b", 1)}
    assert {(each.outcome, each.due_at) for each in kept} == {
        (Outcome.REPLACED, datetime.fromtimestamp(0, UTC))
    }


def test_a_crash_of_the_server_is_noticed(frail_server: PostgresServer) -> None:
    url = frail_server.create_database()
    with OpenBulk(parse({"url": url, "queue": "orders"})) as bulk:
        bulk.run(partial(bulk.store.stage, batch_of("a"), STAGE, 1))
        frail_server.restart("immediate")
        with pytest.raises(StoreError, match="so run the batch again"):
            merge(bulk, {1: 1})


def test_a_batch_that_is_leased_is_found_again(bulk: OpenBulk, queue: Queue[Any]) -> None:
    queue.offer_batch(Message(f"k{number}", 1) for number in range(25))
    assert lease(bulk, 1) == StreamBatch(sequence=1, slices=3, rows=25)
    queue.offer("more", 1)
    assert lease(bulk, 1) == StreamBatch(sequence=1, slices=3, rows=25)
    assert lease(bulk, 2) == StreamBatch(sequence=2, slices=1, rows=1)
    assert lease(bulk, 3) is None


def test_acks_reach_up_to_a_batch(bulk: OpenBulk, queue: Queue[Any]) -> None:
    queue.offer_batch(Message(f"k{number}", 1) for number in range(30))
    for sequence in (1, 2, 3):
        lease(bulk, sequence, limit=10)
    assert bulk.run(partial(bulk.store.ack, BatchId("me", 2), bulk.now())) == 20
    assert bulk.run(partial(bulk.store.ack, BatchId("me", 2), bulk.now())) == 0
    assert bulk.run(partial(bulk.store.ack, BatchId("others", 3), bulk.now())) == 0
    assert queue.stats().leased == 10


def test_a_slice_is_read_page_by_page(bulk: OpenBulk, queue: Queue[Any]) -> None:
    queue.offer_batch(Message(f"k{number:02}", 1) for number in range(25))
    lease(bulk, 1)
    read = []
    for number, length in enumerate((10, 10, 5)):
        of = partial(bulk.store.read_slice, BatchId("me", 1), number)
        measure = partial(bulk.store.slice_lengths, BatchId("me", 1), number, 4)
        assert bulk.run(measure) == [0] * length
        for page in (range(4), range(4, length)):
            rows = bulk.run(partial(of, page, with_payload=False))
            assert len(rows) == len(page)
            read += [row[0] for row in rows]
    assert read == [f"k{number:02}" for number in range(25)]


def test_a_batch_that_is_forgotten_has_nothing_to_read(bulk: OpenBulk) -> None:
    assert bulk.run(partial(bulk.store.slice_lengths, BatchId("me", 1), 0, 9)) == []
    read = partial(bulk.store.read_slice, BatchId("me", 1), 0, range(9), with_payload=True)
    assert bulk.run(read) == []


def test_what_a_stream_held_when_it_died_is_not_buried_for_it(
    bulk: OpenBulk, queue: Queue[Any], url: str
) -> None:
    """The tokens of several batches, because they differ in every digit but the last."""
    queue.offer_batch(Message(f"k{number}", 1) for number in range(16))
    for sequence in range(1, 9):
        lease(bulk, sequence, limit=2)
    later = ManualClock(datetime.now(UTC) + timedelta(hours=1))
    with Queue[Any].open(url, "orders", max_attempts=1, clock=later) as strict:
        assert [each.attempt for each in strict.try_poll_many(99)] == [2] * 16
        assert strict.stats().buried == 0


def test_the_first_batch_that_is_not_acked(bulk: OpenBulk, queue: Queue[Any]) -> None:
    first = partial(bulk.store.first_batch, "me")
    assert bulk.run(first) is None
    queue.offer_batch(Message(f"k{number}", 1) for number in range(30))
    for sequence in (1, 2, 3):
        lease(bulk, sequence, limit=10)
    bulk.run(partial(bulk.store.ack, BatchId("me", 1), bulk.now()))
    assert bulk.run(first) == StreamBatch(sequence=2, slices=1, rows=10)
    assert bulk.run(partial(bulk.store.first_batch, "others")) is None


def test_what_is_lost_is_neither_read_nor_extended_nor_acked(
    bulk: OpenBulk, queue: Queue[Any]
) -> None:
    queue.offer_batch(Message(key, 1) for key in "abc")
    lease(bulk, 1)
    queue.offer("b", "changed")
    read = partial(bulk.store.read_slice, BatchId("me", 1), 0, range(3), with_payload=False)
    assert [row[:2] for row in bulk.run(read)] == [("a", None), ("c", None)]
    assert bulk.run(partial(bulk.store.extend, "me", bulk.now() + 60_000)) == 2
    assert bulk.run(partial(bulk.store.ack, BatchId("me", 1), bulk.now())) == 2
    assert queue.stats().total == 1


def test_a_burial_tells_when_its_batch_was_leased(url: str, queue: Queue[Any]) -> None:
    queue.offer("a", 1)
    with OpenBulk(parse({"url": url, "queue": "orders", "history": "true"})) as bulk:
        before = bulk.now()
        lease(bulk, 1)
        leased_by, later = bulk.now(), bulk.now() + 5000
        read = partial(bulk.store.read_slice, BatchId("me", 1), 0, range(1), with_payload=False)
        found = bulk.run(read)[0]
        message_id = found[ID]
        burial = Burial(Lease(message_id, 0, later, found[KEY]), 1, "bad")
        assert bulk.run(partial(bulk.store.bury, BatchId("me", 1), [burial], later)) == {message_id}
    (row,) = queue.history(2)
    assert row.outcome is Outcome.BURIED
    assert row.delivered_at is not None
    assert before <= to_millis(row.delivered_at) <= leased_by


def test_a_locked_message_does_not_keep_others_from_being_extended(ready_database: str) -> None:
    where = {"url": ready_database, "queue": "orders"}
    with OpenBulk(parse(where)) as bulk, Queue.open(ready_database, "orders") as queue:
        queue.offer_batch(Message(key, 1) for key in "abc")
        lease(bulk, 1)
        extend = partial(bulk.store.extend, "me", bulk.now() + 120_000)
        impatient = "-c idle_in_transaction_session_timeout=10s"  # so that nobody waits for ever
        with psycopg.connect(ready_database, options=impatient) as connection:
            queue.within(connection).offer("b", "changed")
            assert bulk.run(extend) == 2
            connection.rollback()
        assert bulk.run(extend) == 3


def test_a_lease_reaches_no_further_than_told(bulk: OpenBulk, queue: Queue[Any]) -> None:
    queue.offer("a", 1)
    now, last = bulk.now(), bulk.run(bulk.store.last_id)
    queue.offer("b", 1)
    batch, reach = BatchId("me", 1), Reach(now, last)
    found = bulk.run(partial(bulk.store.lease, batch, 10, 10, now, now + 60_000, reach))
    assert found == StreamBatch(1, 1, 1)


def test_batches_of_those_who_never_came_back_are_forgotten(
    bulk: OpenBulk, queue: Queue[Any], url: str
) -> None:
    queue.offer("a", 1)
    lease(bulk, 1)
    bulk.run(partial(bulk.store.forget_stale, bulk.now()))
    assert count(url, "duequeue_stream_batch") == 1
    bulk.run(partial(bulk.store.forget_stale, bulk.now() + 3_600_000))
    assert count(url, "duequeue_stream_batch") == 0


texts = some.text(some.characters(exclude_characters="\0", codec="utf-8"), max_size=50)


@pytest.fixture(scope="module")
def staging(postgres_server: PostgresServer) -> Iterator[psycopg.Connection]:
    """A connection to a database that has its tables, for all the examples."""
    url = postgres_server.create_database()
    Queue.open(url, "orders").close()
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection
    postgres_server.drop_database(url)


@settings(deadline=None, max_examples=30)
@given(
    rows=some.lists(
        some.tuples(texts, some.binary(max_size=300), some.integers(-(2**63), 2**63 - 1)),
        min_size=1,
        max_size=20,
    ),
    headers=some.lists(some.none() | texts, min_size=20, max_size=20),
    cut=some.integers(0, 3),
)
def test_arrow_and_copy_agree(
    staging: psycopg.Connection, rows: list[Any], headers: list[Any], cut: int
) -> None:
    keys, payloads, instants = (list(column) for column in zip(*rows, strict=True))
    batch = pa.record_batch(
        {
            "key": pa.array(keys, pa.string()),
            "payload": pa.array(payloads, pa.binary()),
            "due_at": pa.array(instants, pa.int64()),
            "headers": pa.array(headers[: len(rows)], pa.string()),
            "replace": pa.array([key > "m" for key in keys], pa.bool_()),
            **{name: pa.array([5] * len(rows), pa.int64()) for name in ("writer", "batch", "part")},
        }
    ).slice(min(cut, len(rows) - 1))
    staging.execute("DELETE FROM duequeue_stage")
    assert copy_in(staging, "duequeue_stage", batch)
    names = ", ".join(batch.schema.names)
    query = f"SELECT {names} FROM duequeue_stage ORDER BY ctid"  # noqa: S608 - ours
    found = staging.execute(query.encode()).fetchall()
    assert found == [tuple(row.values()) for row in batch.to_pylist()]


def test_what_fills_the_disk_is_told_of_as_such(tmp_path: Path) -> None:
    """SQLite then rolls back by itself, and there is no savepoint to release any more."""
    url = f"sqlite:///{tmp_path / 'queue.db'}"
    with OpenBulk(parse({"url": url, "queue": "orders"})) as bulk:
        many = batch_of(*(f"k{number:05}" for number in range(20_000)), payload=b"x" * 500)
        steps = bulk.store.ingest(many, 0, expect_new=True)
        with closing(sqlite3.connect(tmp_path / "queue.db", isolation_level=None)) as connection:
            connection.execute("PRAGMA cache_size = 5")
            connection.execute("PRAGMA max_page_count = 100")
            connection.execute("BEGIN IMMEDIATE")
            performer = BulkSqliteSession(str(tmp_path), "full")._performer(connection)  # noqa: SLF001 - on a connection that is limited
            with pytest.raises(sqlite3.OperationalError, match="full"):
                drive(steps, performer)


def test_a_file_that_is_gone_is_told_of(tmp_path: Path) -> None:
    snapshots = SqliteSnapshots(str(tmp_path / "none.db"), 1)
    with pytest.raises(StoreError, match="cannot be opened"):
        next(snapshots.read(SnapshotPart(0, 0, 1, None), 10, SnapshotQuery(with_payload=True)))


PLAN = """
import sys
from duequeue.spark.open_bulk import OpenBulk
from duequeue.spark.options import parse

with OpenBulk(parse({"url": sys.argv[1], "queue": "orders"})) as bulk:
    for _ in range(int(sys.argv[2]) if sys.argv[2:] else 1):
        print([tuple(part) for part in bulk.plan(2, 60)])
"""


def planned_elsewhere(*command: str) -> list[SnapshotPart]:
    """Plan in a process that ends at once."""
    return plans_elsewhere(*command)[0]


def plans_elsewhere(*command: str) -> list[list[SnapshotPart]]:
    """Plan several reads; not here, because a copy of a process with many threads may hang."""
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=True)
    plans = map(ast.literal_eval, done.stdout.splitlines())
    return [[SnapshotPart(*part) for part in parts] for parts in plans]


def read_keys(bulk: OpenBulk, parts: list[SnapshotPart]) -> list[str]:
    reader = bulk.snapshots()
    pages = [
        page for part in parts for page in reader.read(part, 100, SnapshotQuery(with_payload=False))
    ]
    return sorted(key for keys, *_ in pages for key in keys)


NO_PLACE_TAKEN = """
    SELECT CAST(count(*) = 0 AS integer) FROM pg_locks
    WHERE locktype = 'advisory' AND objsubid = 2 AND mode = 'ExclusiveLock'
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
KEPT = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'duequeue snapshot'
        AND backend_xmin IS NOT NULL
"""


def offer_two_pages(url: str, queue: Queue[Any]) -> None:
    """Offer enough for two parts, because a single part needs no snapshot."""
    with psycopg.connect(url) as connection:
        # Rows that an earlier test has deleted could fill all the pages of one part.
        connection.execute("TRUNCATE duequeue_message")
    queue.offer_batch(Message(f"k{number}", "x" * 100) for number in range(300))


def test_a_snapshot_outlives_who_has_planned_it(ready_database: str) -> None:
    with (
        Queue.open(ready_database, "orders") as queue,
        OpenBulk(parse({"url": ready_database, "queue": "orders"})) as bulk,
        psycopg.connect(ready_database, autocommit=True) as watch,
    ):
        offer_two_pages(ready_database, queue)
        parts = planned_elsewhere("-c", PLAN, ready_database)
        queue.drop("k7")
        assert "k7" in read_keys(bulk, parts)
        until_one(watch, LET_GO)
        with pytest.raises(StoreError, match="no longer kept"):
            read_keys(bulk, parts)


def test_a_snapshot_outlives_the_patience_of_the_database(ready_database: str) -> None:
    impatient = f"{ready_database}?options=-cidle_in_transaction_session_timeout%3D1"
    with (
        Queue.open(ready_database, "orders") as queue,
        OpenBulk(parse({"url": ready_database, "queue": "orders"})) as bulk,
    ):
        offer_two_pages(ready_database, queue)
        parts = planned_elsewhere("-c", PLAN, impatient)
        queue.drop("k7")
        assert "k7" in read_keys(bulk, parts)


def test_a_driver_keeps_few_snapshots(ready_database: str) -> None:
    """A union of many queues is planned before any of them is read."""
    with (
        Queue.open(ready_database, "orders") as queue,
        OpenBulk(parse({"url": ready_database, "queue": "orders"})) as bulk,
        psycopg.connect(ready_database, autocommit=True) as watch,
    ):
        offer_two_pages(ready_database, queue)
        plans = plans_elsewhere("-c", PLAN, ready_database, str(MOST_SNAPSHOTS + 2))
        assert watch.execute(KEPT).fetchone() == (MOST_SNAPSHOTS,)
        assert [len(parts) for parts in plans] == [2] * MOST_SNAPSHOTS + [1] * 2
        for parts in plans:
            assert len(read_keys(bulk, parts)) == 300
        until_one(watch, LET_GO)


def test_a_read_that_is_given_up_lets_its_snapshot_go(ready_database: str) -> None:
    with (
        Queue.open(ready_database, "orders") as queue,
        OpenBulk(parse({"url": ready_database, "queue": "orders"})) as bulk,
        psycopg.connect(ready_database, autocommit=True) as watch,
    ):
        offer_two_pages(ready_database, queue)
        snapshots = bulk.snapshots()
        first, _ = planned_elsewhere("-c", PLAN, ready_database)
        pages = snapshots.read(first, 10, SnapshotQuery())
        next(pages)
        pages.close()
        until_one(watch, LET_GO)


class TestReaders:
    """How long a snapshot is kept, in seconds of a clock that this test moves."""

    def test_for_seconds_after_every_part_was_read(self) -> None:
        readers = Readers(2, 600, now=0)
        assert readers.need_it({0, 1}, set(), 1)
        assert readers.need_it({1}, {0}, 2)
        assert readers.need_it(set(), {1}, 3)
        assert readers.need_it({0, 1}, set(), 32), "the same DataFrame is used again"
        assert readers.need_it(set(), {0, 1}, 33)
        assert not readers.need_it(set(), set(), 63)

    def test_for_the_whole_time_if_nobody_has_begun(self) -> None:
        readers = Readers(2, 600, now=0)
        assert readers.need_it(set(), set(), 599)
        assert not readers.need_it(set(), set(), 600)

    def test_as_long_as_somebody_reads(self) -> None:
        readers = Readers(2, 600, now=0)
        assert all(readers.need_it({0}, set(), now) for now in range(0, 9000, 30))

    def test_for_a_tenth_of_the_time_between_two_parts(self) -> None:
        readers = Readers(2, 600, now=0)
        assert readers.need_it(set(), {0}, 100)
        assert readers.need_it(set(), set(), 159)
        assert not readers.need_it(set(), set(), 160)

    def test_for_seconds_after_a_reader_was_cut_short(self) -> None:
        readers = Readers(2, 600, now=0)
        assert readers.need_it({0}, set(), 100)
        assert readers.need_it(set(), set(), 129)
        assert readers.need_it({0}, set(), 130), "Spark has started it again"
        assert not readers.need_it(set(), set(), 160)


def test_a_snapshot_of_the_same_name_on_another_server_is_another(
    ready_database: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A server that was started again gives the same names to other snapshots."""
    with (
        Queue.open(ready_database, "orders") as queue,
        OpenBulk(parse({"url": ready_database, "queue": "orders"})) as bulk,
    ):
        offer_two_pages(ready_database, queue)
        first, second = planned_elsewhere("-c", PLAN, ready_database)
        assert second.snapshot is not None
        name, _, _ = second.snapshot.partition(" ")
        before = second._replace(snapshot=f"{name} 2020-01-01 00:00:00+00")
        assert len(read_keys(bulk, [first, second])) == 300
        with pytest.raises(StoreError, match="no longer kept"):
            read_keys(bulk, [before])
        pages = bulk.snapshots().read(before, 100, SnapshotQuery(fail_on_loss=False))
        assert sum(len(keys) for keys, *_ in pages) > 0
        assert "no longer kept" in caplog.text
        assert "this partition shows the present" in caplog.text


def test_a_snapshot_that_was_read_gives_its_place_to_the_next(ready_database: str) -> None:
    with (
        Queue.open(ready_database, "orders") as queue,
        OpenBulk(parse({"url": ready_database, "queue": "orders"})) as bulk,
        psycopg.connect(ready_database, autocommit=True) as watch,
    ):
        offer_two_pages(ready_database, queue)
        for parts in plans_elsewhere("-c", PLAN, ready_database, str(MOST_SNAPSHOTS)):
            assert len(read_keys(bulk, parts)) == 300
        until_one(watch, NO_PLACE_TAKEN)
        assert len(planned_elsewhere("-c", PLAN, ready_database)) == 2


def test_a_snapshot_is_let_go_with_spark(ready_database: str) -> None:
    """The process above the one that plans stands for it."""
    with (
        Queue.open(ready_database, "orders") as queue,
        psycopg.connect(ready_database, autocommit=True) as watch,
    ):
        offer_two_pages(ready_database, queue)
        program = "import subprocess, sys; subprocess.run([sys.executable, '-c', *sys.argv[1:]])"
        assert planned_elsewhere("-c", program, PLAN, ready_database)
        until_one(watch, LET_GO)


def test_why_no_snapshot_is_kept_is_told(ready_database: str) -> None:
    program = """if True:
        import sys
        from duequeue.stores.sql.postgres.settings import PostgresSettings
        from duequeue.bulk.postgres_snapshot_holder import hold
        hold(PostgresSettings(sys.argv[1]), 1, 600)
    """
    url = f"{ready_database}?options=-cno_such_setting%3D1"
    done = subprocess.run(
        [sys.executable, "-c", program, url], capture_output=True, text=True, check=False
    )
    assert re.search(r"StoreError: no snapshot could be kept: .*no_such_setting", done.stderr)


def test_who_keeps_a_snapshot_has_nothing_else_open_and_is_nobodys_child() -> None:
    program = """if True:
        import os
        import signal
        from pathlib import Path
        from duequeue.bulk.postgres_snapshot_holder import detach

        def work(tell):
            files = [os.readlink(each) for each in Path("/dev/fd").iterdir() if each.exists()]
            strange = [each for each in files if each != os.devnull]
            shared = os.getppid() == before, os.getsid(0) == session
            tell(f"{len(strange)} {shared} {signal.getsignal(signal.SIGTERM)!r}")

        before, session = os.getpid(), os.getsid(0)
        signal.signal(signal.SIGTERM, print)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        with open(os.__file__), open("/dev/zero"):
            print(detach(work))
    """
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    answer = f"1 (False, False) {signal.SIG_DFL!r}"
    assert done.stdout.strip() == answer, "the one file is where it tells this"


def test_what_goes_wrong_before_it_is_kept_is_told() -> None:
    program = """if True:
        import resource
        import time
        from duequeue.bulk import postgres_snapshot_holder as detached
        from duequeue.bulk.postgres_snapshot_holder import detach

        print(detach(lambda tell: 1 / 0))
        detached._PATIENCE = 0.01
        print(detach(lambda tell: time.sleep(1)))
        detached._PATIENCE = 60
        resource.setrlimit(resource.RLIMIT_NOFILE, (6, 6))
        print(detach(lambda tell: tell("well")))
    """
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    told = done.stdout.splitlines()
    assert told[0] == "division by zero"
    assert told[1] == "its process did not answer within 0.01 s"
    assert "Too many open files" in told[2]


def test_behind_a_pooler_no_snapshot_is_kept(
    ready_database: str, caplog: pytest.LogCaptureFixture
) -> None:
    url = f"{ready_database}?pooler=transaction"
    with (
        Queue.open(url, "orders") as queue,
        OpenBulk(parse({"url": url, "queue": "orders"})) as bulk,
    ):
        queue.offer_batch(Message(f"k{number}", "x" * 200) for number in range(1000))
        snapshots = bulk.snapshots()
        assert len(bulk.plan(None, 600)) == 1, "one moment, unless asked for more"
        assert messages_of("duequeue.spark", caplog) == []
        parts = bulk.plan(3, 600)
        assert "each of the 3 partitions of this read shows its own moment" in caplog.text
        assert [part.snapshot for part in parts] == [None] * 3
        queue.drop("k7")
        found = [
            key
            for part in parts
            for keys, *_ in snapshots.read(part, 100, SnapshotQuery(with_payload=False))
            for key in keys
        ]
        assert sorted(found) == sorted(f"k{number}" for number in range(1000) if number != 7)


def test_a_url_without_a_folder_of_its_own_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="absolute path"):
        parse({"url": "sqlite:///queue.db", "queue": "orders"})
