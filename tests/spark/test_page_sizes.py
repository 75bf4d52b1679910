"""Large messages are read few at a time: they pass through the memory of Python and Java."""

from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows

from duequeue import Message, Queue
from duequeue.bulk.port import PAGE_BYTES, PAYLOAD, SnapshotPart, SnapshotQuery
from duequeue.bulk.sql import CHUNK_ROWS
from duequeue.spark.open_bulk import OpenBulk
from duequeue.spark.options import parse
from duequeue.spark.read_rows import full_schema
from duequeue.spark.stream_reader import StreamReader
from tests.fixtures.stores import on_every_bulk_store
from tests.spark.frames import PAST

LARGE = 300_000
MANY = 200
SMALL = 2500
END = 2**31


@pytest.fixture
def large(queue: Queue[Any]) -> None:
    """More than three pages of large messages."""
    queue.offer_batch(Message(f"k{number}", "x" * LARGE, PAST) for number in range(MANY))


@on_every_bulk_store
@pytest.mark.usefixtures("large")
def test_of_a_snapshot(url: str) -> None:
    with OpenBulk(parse({"url": url, "queue": "orders"})) as bulk:
        pages = bulk.snapshots().read(
            SnapshotPart(0, 0, END, None), MANY, SnapshotQuery(with_payload=True)
        )
        found = [[len(payload) for payload in page[PAYLOAD]] for page in pages]
    assert sum(map(len, found)) == MANY
    assert max(map(sum, found)) < PAGE_BYTES + CHUNK_ROWS * LARGE


@on_every_bulk_store
@pytest.mark.usefixtures("large")
def test_payloads_that_are_not_read_take_no_room(url: str) -> None:
    with OpenBulk(parse({"url": url, "queue": "orders"})) as bulk:
        pages = bulk.snapshots().read(
            SnapshotPart(0, 0, END, None), MANY, SnapshotQuery(with_payload=False)
        )
        assert [len(page[0]) for page in pages] == [MANY]


@on_every_bulk_store
@pytest.mark.parametrize("rows", [7, 65, 100, 1000, 1500, 2000, 9000])
def test_pages_have_at_most_the_rows_asked_for(url: str, queue: Queue[Any], rows: int) -> None:
    queue.offer_batch(Message(f"k{number}", 1, PAST) for number in range(SMALL))
    with OpenBulk(parse({"url": url, "queue": "orders"})) as bulk:
        pages = bulk.snapshots().read(
            SnapshotPart(0, 0, END, None), rows, SnapshotQuery(with_payload=True)
        )
        found = [len(page[0]) for page in pages]
    assert sum(found) == SMALL
    assert max(found) <= rows
    assert all(length > rows / 2 for length in found[:-1])


@on_every_bulk_store
@pytest.mark.usefixtures("large")
def test_of_a_stream(url: str) -> None:
    sizes = stream_pages(url, str(MANY))
    assert sum(sizes) == MANY
    assert max(sizes) == PAGE_BYTES // (LARGE + len('""'))


def test_of_a_stream_of_large_ones_that_take_little_room(url: str, queue: Queue[Any]) -> None:
    """PostgreSQL keeps them in the table itself, compressed."""
    queue.offer_batch(Message(f"k{number}", "x" * 100_000, PAST) for number in range(MANY))
    assert stream_pages(url, str(MANY)) == [167, 33]


@on_every_bulk_store
def test_of_a_stream_of_small_and_large_ones(url: str, queue: Queue[Any]) -> None:
    queue.offer_batch(Message(f"k{number}", 1, PAST) for number in range(150))
    queue.offer("large", "x" * (PAGE_BYTES // 3), PAST)
    queue.offer("larger", "x" * (PAGE_BYTES // 2 - 1000), PAST)
    queue.offer("too large to join them", "x" * (PAGE_BYTES // 3), PAST)
    assert stream_pages(url, "100") == [100, 52, 1]


def test_small_ones_come_many_at_a_time(url: str, queue: Queue[Any]) -> None:
    queue.offer_batch(Message(f"k{number}", 1, PAST) for number in range(1900))
    assert stream_pages(url, "1000") == [1000, 900]


def stream_pages(url: str, batch_size: str) -> list[int]:
    """How many messages there are in each page of a micro-batch."""
    options = parse({"url": url, "queue": "orders", "batchSize": batch_size, "numPartitions": "1"})
    reader = StreamReader(options, full_schema(options))
    try:
        start = reader.initialOffset()
        end = reader.latestOffset(start, ReadMaxRows(10_000))
        (part,) = reader.partitions(start, end)
        return [page.num_rows for page in reader.read(part)]
    finally:
        reader.stop()
