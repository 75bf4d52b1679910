"""What a stream shows in its progress, what it waits for, and whose checkpoint it may use."""

from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadMaxRows

from duequeue import Message, Queue, StoreError
from duequeue.bulk.port import Backlog, BatchId, OfferCounts, Reach, StreamCounts
from duequeue.spark import stream_backlog, stream_counts
from duequeue.spark.open_bulk import OpenBulk
from duequeue.spark.options import parse
from duequeue.spark.read_rows import full_schema
from duequeue.spark.stream_backlog import Admission, BacklogReport
from duequeue.spark.stream_leases import NO_LIMIT
from duequeue.spark.stream_reader import StreamReader
from tests.race.together import PATIENCE
from tests.spark.conftest import OpenPlain
from tests.spark.frames import PAST
from tests.spark.streams import run_through, stream, to_function


def fill(queue: Queue[Any], count: int, first: int = 0) -> None:
    numbers = range(first, first + count)
    queue.offer_batch(Message(f"k{number}", number, PAST) for number in numbers)


def reader_of(url: str, **options: str) -> StreamReader:
    given = parse({"url": url, "queue": "orders", **options})
    return StreamReader(given, full_schema(given))


def test_the_progress_shows_backlog_and_lag(
    spark: SparkSession, url: str, queue: Queue[Any], tmp_path: Path
) -> None:
    fill(queue, 25)
    frame = stream(spark, url, maxMessagesPerTrigger="10")
    query = run_through(to_function(frame, tmp_path, lambda *_: None))
    (source,) = query.recentProgress[0].sources
    assert source.latestOffset is not None
    assert '"queue":"orders|json"' in source.latestOffset.replace(" ", "")
    assert '"backlog":15' in source.latestOffset.replace(" ", "")
    assert '"lagMillis":' in source.latestOffset


def test_the_backlog_is_not_counted_at_every_trigger(monkeypatch: pytest.MonkeyPatch) -> None:
    at, counted = [100.0], list[int]()

    def count(most: int) -> Backlog:
        counted.append(most)
        at[0] += 1.0  # it takes a second
        return Backlog(7, 40)

    monkeypatch.setattr(stream_backlog, "monotonic", lambda: at[0])
    report = BacklogReport(count, lambda: 100)
    assert report.figures == {}
    report.refresh()
    assert report.figures == {"backlog": 7, "lagMillis": 60}
    at[0] = 150.0
    report.refresh()
    assert len(counted) == 1, "a slow count pauses for longer"
    at[0] = 152.0
    report.refresh()
    assert len(counted) == 2


def test_a_trigger_waits_for_enough_messages(url: str, queue: Queue[Any]) -> None:
    reader = reader_of(url, minMessagesPerTrigger="3", maxTriggerDelay="1 hour")
    start = reader.initialOffset()
    try:
        fill(queue, 2)
        assert reader.latestOffset(start, ReadMaxRows(10)) == start
        assert queue.stats().leased == 0
        fill(queue, 1, first=2)
        latest = start
        while latest == start:  # an idle query looks ten times a second
            latest = reader.latestOffset(start, ReadMaxRows(10))
        assert latest["rows"] == 3
    finally:
        reader.stop()


def test_a_trigger_does_not_wait_for_longer_than_its_delay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at = [0.0]
    monkeypatch.setattr(stream_backlog, "monotonic", lambda: at[0])
    admission = Admission(least=5, delay_millis=60_000)
    assert not admission.admits(lambda _: Backlog(4, 0))
    assert admission.admits(lambda _: Backlog(5, 0))
    at[0] = 60.0
    assert admission.admits(lambda _: Backlog(1, 0))
    admission.leased()
    assert not admission.admits(lambda _: Backlog(1, 0))


def test_a_count_that_finds_too_few_pauses_for_fifty_times_as_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at, counted = [0.0], list[int]()

    def count(most: int) -> Backlog:
        counted.append(most)
        at[0] += 0.1  # it takes a tenth of a second
        return Backlog(4 if len(counted) == 1 else 5, 0)

    monkeypatch.setattr(stream_backlog, "monotonic", lambda: at[0])
    admission = Admission(least=5, delay_millis=60_000)
    assert not admission.admits(count)
    at[0] = 5.0
    assert not admission.admits(count)
    assert len(counted) == 1
    at[0] = 5.2
    assert admission.admits(count)
    assert admission.admits(count), "a count that finds enough is followed by a batch"
    assert len(counted) == 3


def test_a_batch_that_the_consumer_holds_is_found_after_a_restart(
    url: str, queue: Queue[Any]
) -> None:
    """The batch was leased ahead; too few messages are left for a new one."""
    fill(queue, 3)
    given = parse({"url": url, "queue": "orders"})
    with OpenBulk(given) as bulk:
        now = bulk.now()
        reach = Reach(now, NO_LIMIT)
        held = partial(bulk.store.lease, BatchId("me", 2), 2, 1000, now, now + 300_000, reach)
        assert bulk.run(held) is not None
    reader = reader_of(url, minMessagesPerTrigger="2", maxTriggerDelay="1 hour")
    start = {**reader.initialOffset(), "consumer": "me", "sequence": 1}
    try:
        latest = reader.latestOffset(start, ReadMaxRows(2))
        assert (latest["sequence"], latest["rows"]) == (2, 2)
        (part,) = reader.partitions(start, latest)
        assert sum(page.num_rows for page in reader.read(part)) == 2
        assert reader.latestOffset(latest, ReadMaxRows(2)) == latest, "a new batch is withheld"
    finally:
        reader.stop()


def test_an_error_of_the_count_does_not_fail_the_trigger(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def count(_: int) -> Backlog:
        raise StoreError("canceling statement due to statement timeout")

    report = BacklogReport(count, lambda: 100)
    report.refresh()
    report.refresh()
    report.close()
    assert report.figures == {}
    assert caplog.messages == [
        "could not count the backlog: canceling statement due to statement timeout"
    ]


def test_a_slow_count_does_not_delay_the_trigger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_backlog, "MOMENT_SECONDS", 0.01)
    counted, end = list[int](), Event()

    def count(most: int) -> Backlog:
        counted.append(most)
        assert end.wait(PATIENCE)
        return Backlog(7, 40)

    report = BacklogReport(count, lambda: 100)
    report.refresh()
    report.refresh()
    assert (report.figures, len(counted)) == ({}, 1)
    end.set()
    monkeypatch.setattr(stream_backlog, "MOMENT_SECONDS", PATIENCE)
    report.refresh()
    report.close()
    assert report.figures == {"backlog": 7, "lagMillis": 60}


def test_a_run_that_ends_by_itself_does_not_wait_for_more(
    spark: SparkSession, url: str, queue: Queue[Any], tmp_path: Path
) -> None:
    fill(queue, 2)
    frame = stream(spark, url, minMessagesPerTrigger="3", maxTriggerDelay="1 hour")
    run_through(to_function(frame, tmp_path, lambda *_: None))
    assert queue.stats().total == 0


def test_a_checkpoint_of_another_queue_is_refused(
    spark: SparkSession, url: str, queue: Queue[Any], open_plain: OpenPlain, tmp_path: Path
) -> None:
    fill(queue, 2)
    bills = open_plain("bills")
    bills.offer("b", 1, PAST)
    run_through(to_function(stream(spark, url), tmp_path, lambda *_: None))
    other = to_function(stream(spark, url, queue="bills"), tmp_path, lambda *_: None)
    with pytest.raises(PySparkException, match="the checkpoint belongs to the queue 'orders'"):
        run_through(other)
    assert bills.stats().due == 1


def test_an_offset_of_an_early_version_names_no_queue(url: str, queue: Queue[Any]) -> None:
    fill(queue, 2)
    reader = reader_of(url)
    try:
        latest = reader.latestOffset({"consumer": "me", "sequence": 0}, ReadMaxRows(10))
        assert (latest["queue"], latest["rows"]) == ("orders|json", 2)
        del latest["queue"]
        assert len(reader.partitions({"consumer": "me", "sequence": 0}, latest)) == 1
    finally:
        reader.stop()


def test_an_unreachable_server_is_reported_in_seconds(spark: SparkSession, tmp_path: Path) -> None:
    frame = stream(spark, "postgresql://127.0.0.1:1/none")
    query = to_function(frame, tmp_path, lambda *_: None).trigger(availableNow=True).start()
    with pytest.raises(PySparkException, match=r"127\.0\.0\.1"):
        query.awaitTermination(20)
    assert not query.isActive


def test_what_became_of_the_rows_of_a_stream_is_counted(
    spark: SparkSession, url: str, queue: Queue[Any], open_plain: OpenPlain, tmp_path: Path
) -> None:
    fill(queue, 25)
    copies = open_plain("copies")
    copies.offer("k3", 3, PAST)
    copies.offer("k4", "other", PAST)
    frame = stream(spark, url, maxMessagesPerTrigger="10").select("key", "payload", "due_at")
    assert stream_counts(url=url, queue="copies", app="me") is None
    given = {"url": url, "queue": "copies", "txnAppId": "me"}
    writer = frame.writeStream.format("duequeue").options(**given)
    run_through(writer.option("checkpointLocation", str(tmp_path / "checkpoint")))
    assert stream_counts(url=url, queue="copies", app="me") == StreamCounts(
        2, OfferCounts(created=23, updated=1, ignored=1)
    )
