"""`df.writeStream.format("duequeue")`: each micro-batch offered exactly once."""

import json
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from duequeue import Message, Queue
from duequeue.bulk.port import OfferCounts, StageId
from duequeue.spark.open_bulk import OpenBulk
from duequeue.spark.options import parse
from duequeue.spark.row_digest import digest_of
from duequeue.spark.stream_writer import Staged, StreamWriter
from tests.fixtures.stores import on_every_bulk_store, on_redis_too
from tests.race.together import PATIENCE
from tests.spark.conftest import OpenPlain
from tests.spark.frames import PAST, SCHEMA
from tests.spark.streams import run_through, stream
from tests.spark.tables import count, drained


class Inbox:
    """A folder of files that a stream reads, one micro-batch each."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.folder = folder
        (folder / "in").mkdir()
        self._spark = spark

    def put(self, name: str, rows: list[dict[str, Any]]) -> None:
        lines = [json.dumps({"due_at": PAST.isoformat(), **row}) for row in rows]
        hidden = self.folder / "in" / f".{name}"
        hidden.write_text("\n".join(lines))
        hidden.rename(self.folder / "in" / name)

    def frame(self, schema: str = SCHEMA) -> DataFrame:
        reader = self._spark.readStream.schema(schema).option("maxFilesPerTrigger", "1")
        return reader.json(str(self.folder / "in"))


@pytest.fixture
def inbox(spark: SparkSession, tmp_path: Path) -> Inbox:
    return Inbox(spark, tmp_path)


def into(frame: DataFrame, url: str, folder: Path, **options: str) -> DataStreamWriter:
    given = {"url": url, "queue": "orders", "checkpointLocation": str(folder / "check"), **options}
    return frame.writeStream.format("duequeue").options(**given)


def forget_last_commit(folder: Path) -> None:
    """Leave the checkpoint as a crash between the sink's commit and Spark's own would."""
    last = max((folder / "check" / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    last.unlink()
    last.with_name(f".{last.name}.crc").unlink(missing_ok=True)


@on_every_bulk_store
def test_every_batch_arrives(inbox: Inbox, url: str, queue: Queue[Any], tmp_path: Path) -> None:
    for number in range(3):
        inbox.put(f"{number}", [{"key": f"k{number}{each}", "payload": "1"} for each in range(10)])
    run_through(into(inbox.frame(), url, tmp_path))
    assert len({each.key for each in drained(queue)}) == 30
    assert count(url, "duequeue_stage") == 0


@on_every_bulk_store
def test_a_replayed_batch_is_offered_once_even_if_it_was_consumed(
    inbox: Inbox, url: str, queue: Queue[Any], tmp_path: Path
) -> None:
    inbox.put("1", [{"key": "a", "payload": "1"}, {"key": "b", "payload": "2"}])
    run_through(into(inbox.frame(), url, tmp_path))
    assert queue.ack_many(drained(queue)) == 2
    forget_last_commit(tmp_path)
    inbox.put("2", [{"key": "c", "payload": "3"}])
    run_through(into(inbox.frame(), url, tmp_path))
    assert [each.key for each in drained(queue)] == ["c"]
    assert count(url, "duequeue_stage") == 0


def test_another_query_is_another_writer(
    inbox: Inbox, url: str, queue: Queue[Any], tmp_path: Path
) -> None:
    inbox.put("1", [{"key": "a", "payload": "1"}])
    run_through(into(inbox.frame(), url, tmp_path))
    assert queue.ack_many(drained(queue)) == 1
    shutil.rmtree(tmp_path / "check")
    run_through(into(inbox.frame(), url, tmp_path))
    assert [each.key for each in drained(queue)] == ["a"], "a new checkpoint starts anew"


def test_an_app_id_outlives_the_checkpoint(
    inbox: Inbox, url: str, queue: Queue[Any], tmp_path: Path
) -> None:
    inbox.put("1", [{"key": "a", "payload": "1"}])
    run_through(into(inbox.frame(), url, tmp_path, txnAppId="reminders"))
    assert queue.ack_many(drained(queue)) == 1
    shutil.rmtree(tmp_path / "check")
    run_through(into(inbox.frame(), url, tmp_path, txnAppId="reminders"))
    assert drained(queue) == []


def test_a_batch_that_is_skipped_is_told_of(
    url: str, queue: Queue[Any], caplog: pytest.LogCaptureFixture
) -> None:
    options = parse({"url": url, "queue": "orders"})
    with OpenBulk(options) as bulk:
        bulk.run(partial(bulk.store.record, "app", OfferCounts(), bulk.now()))
    staged = Staged("app", StageId(1, batch=-1), {5: 1}, 0)
    StreamWriter(options).commit([staged], -1)
    assert "skipping batch -1 of 'app'" in caplog.text
    assert queue.stats().total == 0


def test_an_app_id_does_not_hide_a_stream_that_starts_anew(
    inbox: Inbox, url: str, queue: Queue[Any], tmp_path: Path
) -> None:
    for name in "ab":
        inbox.put(name, [{"key": name, "payload": "1"}])
    run_through(into(inbox.frame(), url, tmp_path, txnAppId="reminders"))
    shutil.rmtree(tmp_path / "check")
    with pytest.raises(PySparkException, match="has already merged batch 1, and this is batch 0"):
        run_through(into(inbox.frame(), url, tmp_path, txnAppId="reminders"))
    assert queue.stats().total == 2
    assert count(url, "duequeue_stage") == 0


@on_redis_too
def test_an_app_id_that_another_stream_has_used_loses_nothing(
    spark: SparkSession, url: str, queue: Queue[Any], open_plain: OpenPlain, tmp_path: Path
) -> None:
    """Both streams begin with batch 0, but with other rows."""
    for name in "ab":
        open_plain(name).offer_batch(Message(f"{name}{number}", 1, PAST) for number in range(50))

    def forward(name: str, app: str) -> None:
        frame = stream(spark, url, queue=name).select("key", "payload", "due_at")
        run_through(into(frame, url, tmp_path / name / app, txnAppId=app))

    forward("a", "both")
    with pytest.raises(PySparkException, match="already merged another batch 0, with other rows"):
        forward("b", "both")
    assert queue.stats().total == 50
    assert open_plain("b").stats().total == 50


@on_redis_too
def test_a_batch_that_its_own_query_repeats_may_have_other_rows(
    inbox: Inbox, url: str, queue: Queue[Any], tmp_path: Path
) -> None:
    """Its rows may be random, or those of a handler that fails the second time."""
    inbox.put("1", [{"key": "a", "payload": "1"}])
    run_through(into(inbox.frame(), url, tmp_path))
    forget_last_commit(tmp_path)
    changed = inbox.frame().selectExpr("key", "'2' AS payload", "due_at")
    run_through(into(changed, url, tmp_path))
    assert [each.payload for each in drained(queue)] == [1]


def test_a_digest_does_not_depend_on_the_order_of_rows_but_on_each_value() -> None:
    def digest(*rows: tuple[str, bytes, int, str | None]) -> int:
        keys, payloads, dues, headers = zip(*rows, strict=True)
        return digest_of(
            pa.record_batch(
                {
                    "key": pa.array(keys, pa.string()),
                    "payload": pa.array(payloads, pa.binary()),
                    "due_at": pa.array(dues, pa.int64()),
                    "headers": pa.array(headers, pa.string()),
                }
            )
        )

    one, two = ("a", b"1", -5, None), ("b", b"2", 7, '{"h":"1"}')
    both = digest(one, two)
    assert both == digest(two, one) == digest(one) + digest(two)
    for other in (("a", b"2", -5, None), ("c", b"1", -5, None), ("a", b"1", -4, None)):
        assert digest(other, two) != both
    assert digest(("a", b"1", 7, None), ("b", b"2", -5, '{"h":"1"}')) != both
    assert digest(one, ("b", b"2", 7, '{"h":"2"}')) != both


def test_a_bad_row_fails_the_batch_and_nothing_of_it_is_offered(
    inbox: Inbox, url: str, queue: Queue[Any], tmp_path: Path
) -> None:
    inbox.put("1", [{"key": "good", "payload": "1"}, {"key": "bad", "payload": "no json"}])
    with pytest.raises(
        PySparkException, match="'payload' is not JSON in the row with the key 'bad'"
    ):
        run_through(into(inbox.frame(), url, tmp_path))
    assert queue.stats().total == 0


@on_every_bulk_store
def test_the_same_key_in_several_partitions(
    inbox: Inbox, url: str, queue: Queue[Any], tmp_path: Path
) -> None:
    inbox.put("1", [{"key": f"k{each % 7}", "payload": "1"} for each in range(100)])
    frame = inbox.frame().repartition(4)
    run_through(into(frame, url, tmp_path, batchSize="10"))
    assert sorted(each.key for each in drained(queue)) == [f"k{each}" for each in range(7)]


def test_the_later_row_of_a_partition_wins(
    inbox: Inbox, url: str, queue: Queue[Any], tmp_path: Path
) -> None:
    inbox.put("1", [{"key": f"k{each % 7}", "payload": f"{each}"} for each in range(100)])
    run_through(into(inbox.frame().coalesce(1), url, tmp_path, batchSize="10"))
    assert sorted(each.payload for each in drained(queue)) == list(range(93, 100))


def test_what_a_failed_try_staged_is_left_out(
    inbox: Inbox, url: str, queue: Queue[Any], tmp_path: Path
) -> None:
    """One partition fails for good after another has staged its rows; then the batch is mended."""
    inbox.put("1", [{"key": "good", "payload": "1"}, {"key": "bad", "payload": "no json"}])
    split = inbox.frame().repartition(2, "key")
    with pytest.raises(PySparkException, match="is not JSON"):
        run_through(into(split, url, tmp_path, batchSize="1"))
    mended = split.selectExpr("concat(key, '!') AS key", "'1' AS payload", "due_at")
    run_through(into(mended, url, tmp_path))
    assert sorted(each.key for each in drained(queue)) == ["bad!", "good!"]
    assert count(url, "duequeue_stage") == 0


def test_from_queue_to_queue(
    spark: SparkSession, url: str, queue: Queue[Any], open_plain: OpenPlain, tmp_path: Path
) -> None:
    for number in range(100):
        queue.offer(f"k{number}", number, PAST)
    frame = stream(spark, url, maxMessagesPerTrigger="30")
    forwarded = frame.select("key", "payload", "due_at", "headers")
    run_through(into(forwarded, url, tmp_path, queue="copies"))
    assert queue.stats().total == 0
    assert sorted(each.payload for each in drained(open_plain("copies"))) == list(range(100))


def test_a_waiting_consumer_is_woken(
    inbox: Inbox, url: str, open_plain: OpenPlain, tmp_path: Path
) -> None:
    with open_plain() as patient:
        query = into(inbox.frame(), url, tmp_path).start()
        try:
            for name in "ab":
                inbox.put(name, [{"key": name, "payload": "1"}])
                delivery = patient.poll(PATIENCE)
                assert delivery is not None
                assert delivery.key == name
                assert delivery.ack()
        finally:
            query.stop()


def test_wrong_columns(inbox: Inbox, url: str, tmp_path: Path) -> None:
    inbox.put("1", [{"key": "a", "payload": "1"}])
    frame = inbox.frame().select("key", "payload")
    with pytest.raises(PySparkException, match="column 'due_at' is missing"):
        run_through(into(frame, url, tmp_path))


def test_complete_mode_is_refused(inbox: Inbox, url: str, tmp_path: Path) -> None:
    inbox.put("1", [{"key": "a", "payload": "1"}])
    counted = inbox.frame().groupBy("key").count()
    frame = counted.selectExpr("key", "string(count) AS payload", "timestamp'2020-01-01' AS due_at")
    with pytest.raises(PySparkException, match="would empty the queue"):
        run_through(into(frame, url, tmp_path).outputMode("complete"))
