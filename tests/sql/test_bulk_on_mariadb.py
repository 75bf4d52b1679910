"""Bulk operations on MariaDB: plans, locks, packets, and what a read shows."""

import logging
import re
from collections.abc import Iterator, Sequence
from functools import partial
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from pymysql.cursors import Cursor

from duequeue import Message, Queue
from duequeue.bulk.mariadb import ROWS_AT_ONCE
from duequeue.bulk.port import BatchId, Conditions, OfferCounts, Reach, SnapshotQuery, StageId
from duequeue.contract.logs import messages_of
from duequeue.spark.open_bulk import OpenBulk
from duequeue.spark.options import parse
from duequeue.stores.sql.mariadb.connections import MariadbConnection
from duequeue.stores.sql.mariadb.replies import ServerReply
from tests.fixtures.mariadb import MariaDBServer, connected
from tests.race.together import PATIENCE
from tests.spark.tables import drained

STAGE = StageId(writer=7, batch=3)
ALL = 2**62
MEGABYTE = 2**20
EXPLAINED = re.compile(r"\s*(?:SELECT|UPDATE|DELETE|INSERT[^;]*?SELECT)\b", re.DOTALL)
TRANSACTIONS = """
    SELECT COUNT(*) FROM information_schema.innodb_trx
    INNER JOIN information_schema.processlist AS process ON process.id = trx_mysql_thread_id
    WHERE process.db = %s
"""
# How a table is read if an index finds its rows.
BY_INDEX = {"const", "eq_ref", "ref", "range"}


@pytest.fixture
def queue(ready_mariadb: str) -> Iterator[Queue[Any]]:
    with Queue.open(ready_mariadb, "orders") as opened:
        yield opened


@pytest.fixture(params=["true", "false"], ids=["with history", "without"])
def bulk(ready_mariadb: str, request: pytest.FixtureRequest) -> Iterator[OpenBulk]:
    options = {"url": ready_mariadb, "queue": "orders", "history": request.param}
    with OpenBulk(parse(options)) as opened:
        yield opened


@pytest.fixture
def plain(ready_mariadb: str) -> Iterator[OpenBulk]:
    with OpenBulk(parse({"url": ready_mariadb, "queue": "orders"})) as opened:
        yield opened


def batch_of(keys: Sequence[str], payload: bytes = b"1") -> pa.RecordBatch:
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


def ingest(bulk: OpenBulk, rows: pa.RecordBatch, *, expect_new: bool) -> Any:
    return bulk.run(partial(bulk.store.ingest, rows, bulk.now(), expect_new=expect_new))


def stage(bulk: OpenBulk, rows: pa.RecordBatch, part: int) -> None:
    bulk.run(partial(bulk.store.stage, rows, STAGE, part))


def merge(bulk: OpenBulk, parts: dict[int, int], app: str = "app") -> OfferCounts | None:
    return bulk.run(partial(bulk.store.merge, app, STAGE, parts, bulk.now()))


def lease(bulk: OpenBulk, sequence: int, limit: int = 100) -> Any:
    now = bulk.now()
    batch, reach = BatchId("me", sequence), Reach(now, ALL)
    return bulk.run(partial(bulk.store.lease, batch, limit, 10, now, now + 60_000, reach))


def keys_of(many: int, first: int = 0) -> list[str]:
    return [f"k{number:05}" for number in range(first, first + many)]


def test_every_message_is_found_by_an_index(
    bulk: OpenBulk, queue: Queue[Any], ready_mariadb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a small table, the server would rather read all rows, and wait for those of others."""
    sent: list[str] = []
    send = MariadbConnection.send

    def note(connection: MariadbConnection, statements: Sequence[str]) -> list[ServerReply]:
        sent.extend(statements)
        return send(connection, statements)

    plans: dict[str, set[tuple[str, str]]] = {}
    queue.offer_batch(Message(key, 1) for key in keys_of(120))
    monkeypatch.setattr(MariadbConnection, "send", note)
    lease(bulk, 1)
    ingest(bulk, batch_of(keys_of(100, 50), b"2"), expect_new=False)
    bulk.run(partial(bulk.store.extend, "me", bulk.now() + 90_000))
    bulk.run(partial(bulk.store.read_slice, BatchId("me", 1), 0, range(9), with_payload=True))
    bulk.run(partial(bulk.store.slice_lengths, BatchId("me", 1), 0, 10**9))
    bulk.run(partial(bulk.store.ack, BatchId("me", 1), bulk.now()))
    for part in (1, 2):
        stage(bulk, batch_of(keys_of(100), b"3"), part)
    merge(bulk, {1: 100, 2: 100})
    for conditions in (
        Conditions(),
        Conditions(keys=["k00001"]),
        Conditions(key_from="k", key_before="l"),
        Conditions(deliver_to=9),
    ):
        snapshots = bulk.snapshots()
        list(snapshots.read(bulk.plan(1, 1)[0], 100, SnapshotQuery(conditions=conditions)))
    monkeypatch.undo()
    with connected(ready_mariadb) as cursor:
        for statement in filter(EXPLAINED.match, sent):
            if "duequeue_message" in statement or "duequeue_stage" in statement:
                cursor.execute(f"EXPLAIN {statement}")
                plans[statement] = {(row[2], row[3]) for row in cursor.fetchall()}
    names = {"message", "duequeue_message", "stage", "offered", "duequeue_stage"}
    read = {(text, plan) for text, found in plans.items() for plan in found if plan[0] in names}
    assert len(plans) > 15, "no statements found: does this test still look in the right place?"
    assert {(text, plan) for text, plan in read if plan[1] not in BY_INDEX} == set()


def test_a_message_that_is_locked_does_not_keep_others_from_being_extended(
    plain: OpenBulk, queue: Queue[Any], ready_mariadb: str
) -> None:
    queue.offer_batch(Message(key, 1) for key in "abc")
    lease(plain, 1)
    with connected(ready_mariadb) as cursor:
        cursor.execute("BEGIN")
        cursor.execute("SELECT id FROM duequeue_message WHERE `key` = 'b' FOR UPDATE")
        until = plain.now() + 90_000
        assert plain.run(partial(plain.store.extend, "me", until)) == 2
        cursor.execute("ROLLBACK")
    assert plain.run(partial(plain.store.extend, "me", until)) == 3, "those with the same end count"


def test_merges_are_made_in_ranges(bulk: OpenBulk, queue: Queue[Any]) -> None:
    many = 2 * ROWS_AT_ONCE + 1
    stage(bulk, batch_of(keys_of(many)), 1)
    stage(bulk, batch_of(keys_of(many, first=ROWS_AT_ONCE), b"2"), 2)
    counts = OfferCounts(created=many + ROWS_AT_ONCE, ignored=ROWS_AT_ONCE + 1)
    assert merge(bulk, {1: many, 2: many}) == counts
    assert sum(each.payload == 2 for each in drained(queue)) == many
    stage(bulk, batch_of(keys_of(many), b"1"), 1)
    assert merge(bulk, {1: many}, "other") == OfferCounts(
        updated=ROWS_AT_ONCE + 1, ignored=ROWS_AT_ONCE
    )


def test_a_part_that_is_staged_again_is_there_once(plain: OpenBulk, queue: Queue[Any]) -> None:
    """As if the answer to the first try was lost."""
    for _ in range(2):
        stage(plain, batch_of(["a", "b"]), 1)
    assert merge(plain, {1: 2}) == OfferCounts(created=2)
    assert len(drained(queue)) == 2


@pytest.mark.parametrize("expect_new", [True, False])
def test_batches_larger_than_a_packet(plain: OpenBulk, queue: Queue[Any], expect_new: bool) -> None:
    large = batch_of(keys_of(13), b'"' + b"x" * MEGABYTE + b'"')
    assert ingest(plain, large, expect_new=expect_new) == (OfferCounts(created=13), expect_new)
    assert len(drained(queue)) == 13


def test_payloads_of_the_largest_size(plain: OpenBulk, queue: Queue[Any]) -> None:
    largest = b'"' + b"\xc3\xa9" * (4 * MEGABYTE - 1) + b'"'
    ingest(plain, batch_of(["a"], largest), expect_new=True)
    stage(plain, batch_of(["c"], largest), 1)
    merge(plain, {1: 1})
    snapshots = plain.snapshots()
    pages = list(snapshots.read(plain.plan(1, 1)[0], 100, SnapshotQuery()))
    assert {payload for page in pages for payload in page[1]} == {largest}
    assert len(drained(queue)) == 2


def test_a_key_that_is_taken_leaves_nothing_of_its_batch(
    plain: OpenBulk, queue: Queue[Any]
) -> None:
    """The keys before it are in an earlier statement of the same batch."""
    keys = keys_of(2 * ROWS_AT_ONCE)
    queue.offer(keys[-1], 1)
    offered = ingest(plain, batch_of(keys, b"2"), expect_new=True)
    assert offered == (OfferCounts(created=len(keys) - 1, updated=1), False)


def test_one_part_shows_one_moment(plain: OpenBulk, queue: Queue[Any]) -> None:
    queue.offer_batch(Message(key, 1) for key in keys_of(500))
    snapshots = plain.snapshots()
    (part,) = plain.plan(None, 600)
    pages = snapshots.read(part, 100, SnapshotQuery())
    found = list(next(pages)[0])
    queue.drop("k00499")
    queue.offer("k99999", 1)
    found += [key for page in pages for key in page[0]]
    assert found == keys_of(500)


def test_several_parts_show_moments_of_their_own(
    plain: OpenBulk, queue: Queue[Any], caplog: pytest.LogCaptureFixture
) -> None:
    queue.offer_batch(Message(key, 1) for key in keys_of(300))
    snapshots = plain.snapshots()
    assert len(plain.plan(None, 600)) == 1
    assert messages_of("duequeue.spark", caplog) == []
    with caplog.at_level(logging.WARNING, "duequeue.spark"):
        parts = plain.plan(3, 600)
    assert "each of the 3 partitions of this read shows its own moment" in caplog.text
    queue.drop("k00007")
    found = [
        key
        for part in parts
        for page in snapshots.read(part, 50, SnapshotQuery(with_payload=False))
        for key in page[0]
    ]
    assert sorted(found) == sorted({*keys_of(300)} - {"k00007"})


def test_a_read_that_is_given_up_ends_its_transaction(
    plain: OpenBulk, queue: Queue[Any], ready_mariadb: str, mariadb_server: MariaDBServer
) -> None:
    queue.offer_batch(Message(key, 1) for key in keys_of(500))
    snapshots = plain.snapshots()
    pages = snapshots.read(plain.plan(1, 1)[0], 100, SnapshotQuery())
    next(pages)
    database = urlsplit(ready_mariadb).path.removeprefix("/")
    with connected(mariadb_server.admin_url) as cursor:
        assert transactions(cursor, database) == 1
        pages.close()
        gives_up_at = monotonic() + PATIENCE
        while transactions(cursor, database) > 0:
            assert monotonic() < gives_up_at, "the transaction is still open"


def transactions(cursor: Cursor, database: str) -> int:
    """Count the open transactions in a database."""
    cursor.execute(TRANSACTIONS, (database,))
    ((count,),) = cursor.fetchall()
    return int(count)
